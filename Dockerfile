# transduce on a CPU. Build: docker build -t transduce .
#
#   docker run --rm -u "$(id -u):$(id -g)" -v "$PWD:/work" -v transduce-models:/models \
#     transduce label photos --classes cat,dog,fox
#
# The encoder is downloaded once, into the volume. Without a network: docker run ... download clip
# where there is one, and --network none afterwards.
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl && rm -r /wheels \
 && mkdir /models /work && chmod 1777 /models /work
ENV HF_HOME=/models \
    TRANSDUCE_CACHE=/models/transduce \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /work
VOLUME ["/models"]
USER nobody
ENTRYPOINT ["transduce"]
CMD ["--help"]
