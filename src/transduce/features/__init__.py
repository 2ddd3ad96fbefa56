"""Features of pictures: extracted once, kept with the identity of their encoder."""
