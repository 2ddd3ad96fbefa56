"""The attacks that once succeeded, and the tests that hold them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class HeldAttack:
    """An attack in words, and the tests (file::function below tests/) that hold it."""

    attack: str
    tests: tuple[str, ...]


def held(attack, *tests):
    return HeldAttack(attack, tests)


IMAGES, OFFLINE = "attacks/test_images.py::", "attacks/test_offline.py::"
REFUSALS, BROKEN = "attacks/test_refusals.py::", "attacks/test_broken.py::"
STORES, PROCESSES = "attacks/test_stores.py::", "attacks/test_processes.py::"
LIMITS = "labeling/review/test_limits.py::"

ROWS = {
    1: held("a .jpg that is PostScript is given to Ghostscript",
            f"{IMAGES}test_postscript_reaches_no_ghostscript",
            f"{IMAGES}test_a_decoding_process_starts_nothing_and_has_limits"),
    2: held("--offline talks to the network",
            f"{OFFLINE}test_the_kernel_sees_no_connection_of_a_whole_run",
            f"{OFFLINE}test_addresses_are_refused_before_any_work"),
    3: held("--classes of more than 255 letters crashes",
            f"{REFUSALS}test_long_lists_of_classes_and_sources_are_no_paths"),
    4: held("two review servers on one run lose answers",
            "labeling/review/test_queue_and_corrections.py::test_a_second_review_of_a_run_is_refused_until_the_first_ends",
            "labeling/test_journal.py::test_processes_at_once_lose_nothing"),
    5: held("a source away for a moment is lost for good",
            f"{STORES}test_a_source_that_was_away_is_asked_again"),
    6: held("a full disk in label is a bus error",
            f"{REFUSALS}test_a_full_disk_stops_label_without_a_bus_error"),
    7: held("damaged features are used without a word",
            f"{STORES}test_a_damaged_shard_is_named_and_made_again_alone"),
    8: held("a full disk in review: it says what is not so",
            f"{LIMITS}test_no_room_for_an_answer_is_said_and_changes_nothing"),
    9: held("a local Ray opens unauthenticated ports on all interfaces",
            f"{PROCESSES}test_workers_end_with_a_killed_parent"),
    10: held("errors of the operating system are tracebacks",
             f"{REFUSALS}test_a_full_disk_stops_embed",
             f"{REFUSALS}test_an_impossible_out_is_refused",
             f"{REFUSALS}test_a_read_only_out_is_refused",
             f"{REFUSALS}test_no_room_for_a_file_stops_export",
             f"{REFUSALS}test_a_folder_that_vanishes_is_a_message"),
    11: held("one link to itself, folder without permission or deep folder stops the whole folder",
             f"{REFUSALS}test_links_in_circles_are_no_reason_to_stop",
             f"{REFUSALS}test_a_folder_without_permission_is_skipped_with_its_reason",
             f"{REFUSALS}test_deep_folders_are_walked"),
    12: held("SIGKILL of bench leaves its workers",
             f"{PROCESSES}test_workers_end_with_a_killed_parent"),
    13: held("a run is published without its report",
             f"{REFUSALS}test_a_run_is_published_with_its_report_or_not_at_all"),
    14: held("damaged stores: tracebacks, and verify sees nothing",
             f"{STORES}test_verify_sees_every_file", f"{STORES}test_damages_are_refused_in_words"),
    15: held("hangs: billion laughs, tensors without storage",
             f"{BROKEN}test_a_billion_laughs_and_devices_are_refused_at_once",
             f"{BROKEN}test_a_tensor_has_no_more_numbers_than_its_file"),
    16: held("bodies of any size are read into memory",
             f"{LIMITS}test_a_long_body_is_refused_and_not_kept"),
    17: held("half-open connections stop the server",
             f"{LIMITS}test_a_crowd_does_not_keep_the_browser_out",
             f"{LIMITS}test_silent_connections_are_closed"),
    18: held("too little memory is a traceback",
             f"{REFUSALS}test_every_known_refusal_says_what_to_do",
             f"{REFUSALS}test_too_little_memory_is_a_message"),
    19: held("tracebacks on input",
             f"{BROKEN}test_broken_input_is_refused_in_words",
             f"{BROKEN}test_deep_cyclic_and_exploding_classes",
             f"{BROKEN}test_every_setting_is_typed_and_in_range",
             f"{BROKEN}test_odd_sources",
             f"{BROKEN}test_archives_are_unpacked_within_limits"),
    20: held("review: NaN is a traceback, true is 1",
             f"{LIMITS}test_nonsense_is_refused_in_words"),
    21: held("a tensor larger than its storage is accepted",
             f"{BROKEN}test_a_tensor_has_no_more_numbers_than_its_file"),
    22: held("Ctrl-C among the imports is a traceback",
             f"{REFUSALS}test_ctrl_c_among_the_imports_is_no_traceback"),
    23: held("model.safetensors differs from run to run",
             f"{BROKEN}test_models_are_written_byte_for_byte_the_same"),
    24: held("cells of CSV files that are formulas",
             "labeling/test_exports.py::test_names_are_no_formulas_in_a_spreadsheet"),
    25: held("exports read all probabilities at once", f"{BROKEN}test_exports_read_block_by_block"),
    26: held("cards: food-101 over http, archives unpacked without limits",
             f"{BROKEN}test_cards_name_secure_addresses",
             f"{BROKEN}test_archives_are_unpacked_within_limits"),
}  # fmt: skip
