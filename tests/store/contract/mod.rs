//! The conformance suite for every store. Each behavior below is a separate test for each store.
//!
//! A behavior is a function of a new [`Site`]. It uses no connections, keys or files, and moves time with the simulated
//! clock.

mod adding;
mod all_time;
mod attributes;
mod auditing;
mod boards;
mod both_editions;
mod bounds;
mod capping;
mod caps;
mod clock;
mod concurrency;
mod contents;
mod distinct;
mod distribution;
mod editions;
mod events;
mod everything;
mod exports;
mod extremes;
mod filling;
mod first_and_last;
mod forgetting;
mod from_first;
mod hostile;
mod ids;
mod imports;
mod kept;
mod keys;
mod latest;
mod looking_back;
mod means;
mod merging;
mod moderation;
mod movement;
mod ordinal;
mod packing;
mod passing;
mod places;
mod ranking;
mod removing;
mod retiring;
mod retracting;
mod rolling;
mod rows;
mod samples;
mod seasons;
mod second_keys;
mod setting;
mod several_windows;
mod sketches;
mod stale;
mod stepping;
mod ties;
mod together;
mod tumbling;
mod unranked;
mod windows;
mod zones;

use crate::site::{Kind, Site};

/// Returns whether every behavior is tested everywhere: `ROLLTOP_TEST_ENGINES=all`.
pub fn is_everywhere() -> bool {
    std::env::var("ROLLTOP_TEST_ENGINES").is_ok_and(|engines| engines == "all")
}

/// Draws a number below `n` for a behavior. It depends on nothing but the names of the behavior and of `what` is drawn
/// (their FNV-1a hash), so it stays the same while other behaviors come and go.
fn draw(behavior: &str, what: &str, n: usize) -> usize {
    let bytes = what.bytes().chain(behavior.bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (hash >> 48) as usize % n
}

/// Returns the store on one of the engines, or on all of them if each behavior is tested everywhere. Stores of turn 0 and
/// turn 1 are on different ones.
fn on_one_engine(behavior: &str, turn: usize, mut on_each: Vec<Kind>) -> Vec<Kind> {
    match is_everywhere() {
        true => on_each,
        false => {
            let nth = (draw(behavior, "engine", on_each.len()) + turn) % on_each.len();
            vec![on_each.swap_remove(nth)]
        }
    }
}

/// Returns a single server.
fn single(behavior: &str) -> Vec<Kind> {
    on_one_engine(behavior, 0, Kind::servers())
}

/// Returns one of the stores whose data is on several servers or in several parts, or each of them if the behavior is
/// tested everywhere. With a key on every ranked board or without, but on one of the two kinds of clusters with it.
fn divided(behavior: &str) -> Vec<Kind> {
    let has_key = draw(behavior, "key", 2) == 1;
    let keyed = |kinds: Vec<Kind>, has_key: bool| -> Vec<Kind> {
        kinds.into_iter().map(|kind| if has_key { kind.with_key() } else { kind }).collect()
    };
    let all = [
        keyed(Kind::clusters(), has_key),
        keyed(Kind::of_parts(3), has_key),
        keyed(Kind::clusters_of_parts(16), !has_key),
    ];
    let drawn = draw(behavior, "division", all.len());
    let kinds = all.into_iter().enumerate().filter(|(nth, _)| is_everywhere() || *nth == drawn);
    kinds.flat_map(|(_, kinds)| on_one_engine(behavior, 1, kinds)).collect()
}

/// Generates a test of each behavior for each store. Behaviors under `in_steps` are tested only where a call takes
/// steps, which retiring and portions do not in the oracle. On Redis and Valkey a behavior is tested on a single server and on one of the
/// other stores, which are drawn.
macro_rules! contract {
    (always: [$($room:ident::$behaviour:ident,)*], in_steps: [$($step_room:ident::$step:ident,)*]) => {
        mod oracle {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                super::$room::$behaviour(super::Site::new(super::Kind::Oracle).await).await;
            })*
        }
        contract! { for embedded, |_| [super::Kind::Embedded]; $($room::$behaviour,)* $($step_room::$step,)* }
        contract! { for embedded_keys, |_| [super::Kind::EmbeddedKeys]; $($room::$behaviour,)* $($step_room::$step,)* }
        contract! { for redis, super::single; $($room::$behaviour,)* $($step_room::$step,)* }
        contract! { for divided, super::divided; $($room::$behaviour,)* $($step_room::$step,)* }
    };
    (for $store:ident, $kinds:expr; $($room:ident::$behaviour:ident,)*) => {
        mod $store {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                let kinds = $kinds;
                for kind in kinds(stringify!($behaviour)) {
                    println!("on {kind:?}");
                    super::$room::$behaviour(super::Site::new(kind).await).await;
                }
            })*
        }
    };
}

contract! {
    always: [
        events::each_counted_item_is_an_event_of_its_slot,
        events::events_of_every_metric_are_counted,
        events::events_stay_when_subjects_go_and_go_with_their_slot,
        movement::ranks_at_the_newest_boundary_are_noted,
        movement::the_first_call_after_a_boundary_notes_the_ranks_before_it_writes,
        movement::over_all_time_ranks_are_those_at_the_newest_of_several_boundaries,
        movement::ranks_are_unknown_if_the_head_did_not_come_from_the_slot_before,
        movement::ranks_stay_until_the_next_boundary,
        movement::a_window_of_one_slot_has_the_ranks_of_the_slot_before,
        movement::only_the_first_thousand_lines_have_ranks,
        movement::a_removed_subject_is_not_named_in_ranks,
        movement::hidden_subjects_have_no_rank_at_the_boundary,
        movement::each_window_has_ranks_of_its_own,
        movement::days_begin_at_midnight_of_the_time_zone,
        movement::only_a_ranking_with_boundaries_has_earlier_ranks,
        movement::ranks_survive_a_restart,
        movement::the_ranks_of_an_edition_stay_when_editions_are_exchanged,
        movement::periods_have_ranks_until_they_are_sealed,
        adding::outcomes_are_in_the_order_of_the_items,
        adding::items_of_one_subject_are_summed_by_slot,
        adding::returned_scores_include_the_whole_batch,
        adding::an_empty_batch_is_accepted,
        adding::late_items_are_rejected_and_the_others_counted,
        adding::items_up_to_five_seconds_early_count_in_the_current_slot,
        adding::items_are_placed_in_slots_to_the_millisecond,
        adding::sums_with_decimals_are_exact,
        adding::a_batch_of_5000_items_is_counted,
        adding::a_batch_of_5000_items_of_one_subject_is_counted,
        adding::amounts_of_zero_change_nothing,
        all_time::nothing_expires_and_nothing_is_too_late,
        all_time::every_metric_has_a_total_of_all_time,
        all_time::retractions_of_any_age_subtract,
        all_time::samples_set_the_total,
        all_time::totals_reach_the_largest_exact_number,
        all_time::ids_are_remembered_for_a_day_or_as_defined,
        all_time::values_stay_and_tombstones_last_a_day,
        all_time::a_capped_subject_stays_capped,
        all_time::a_board_over_all_time_reads_its_one_slot,
        auditing::an_audit_of_a_consistent_board_finds_no_differences,
        auditing::a_repair_of_a_consistent_board_changes_nothing,
        auditing::an_audit_of_an_empty_board_checks_nothing,
        boards::define_returns_created_unchanged_or_conflict,
        setting::setting_a_subject_replaces_it_in_every_window,
        boards::a_board_has_the_time_of_its_definition,
        boards::defining_and_removing_boards_changes_the_boards_version,
        boards::changes_of_editions_change_the_boards_version,
        boards::boards_are_listed_in_order_of_name,
        boards::board_changes_are_visible_to_other_instances_at_once,
        boards::undefine_returns_whether_the_board_existed,
        boards::calls_with_a_handle_of_a_removed_board_return_board_changed,
        boards::a_redefined_board_starts_empty,
        boards::changes_to_a_board_do_not_affect_other_boards,
        bounds::amounts_that_exceed_the_slot_bound_are_rejected,
        bounds::amounts_below_the_negative_slot_bound_are_rejected,
        bounds::items_of_a_refused_sum_are_tried_one_by_one,
        bounds::items_of_a_batch_have_the_outcomes_of_items_one_by_one,
        bounds::every_item_of_a_subject_has_the_score_after_the_last_of_them,
        bounds::ids_of_out_of_range_items_are_not_remembered,
        bounds::extreme_amounts_are_rejected_without_overflow,
        bounds::sums_of_large_batches_are_exact,
        bounds::scores_of_full_slots_are_exact,
        clock::set_clock_refuses_earlier_times,
        clock::the_clock_is_shared_by_all_instances,
        clock::set_clock_is_refused_on_the_system_clock,
        clock::a_window_at_the_epoch_starts_at_the_epoch,
        clock::a_board_works_at_the_largest_timestamp,
        concurrency::concurrent_adds_lose_nothing,
        concurrency::concurrent_items_with_the_same_id_count_once,
        concurrency::of_concurrent_definitions_exactly_one_is_created,
        concurrency::concurrent_rollovers_and_writes_leave_exact_scores,
        concurrency::concurrent_removals_and_writes_lose_nothing,
        concurrency::concurrent_redefinitions_keep_the_writes_to_the_current_board,
        contents::a_walk_returns_the_contents_of_every_kind_of_board,
        contents::a_walk_returns_what_was_counted_in_its_form,
        contents::an_empty_board_has_no_contents,
        contents::a_walk_over_thousands_of_subjects_takes_bounded_steps,
        contents::a_subject_with_thousands_of_values_is_returned_in_steps,
        contents::a_walk_through_rollover_and_retiring_returns_everything_once,
        contents::subjects_that_stay_are_returned_while_others_expire,
        contents::changes_during_a_walk_are_recognized,
        contents::what_stays_is_returned_while_other_subjects_change,
        contents::a_cursor_of_another_track_is_harmless,
        attributes::attributes_are_replaced_merged_and_removed,
        attributes::attributes_beyond_a_bound_change_nothing,
        attributes::attributes_outlive_data_restarts_and_rollovers_and_leave_with_their_subject,
        attributes::what_is_for_new_subjects_leaves_those_that_have_some,
        attributes::subjects_with_attributes_are_listed_in_order,
        attributes::every_edition_has_the_same_attributes,
        attributes::attributes_of_a_key_are_its_own,
        moderation::a_hidden_subject_counts_on_and_is_in_no_ranking,
        moderation::a_shadowed_subject_sees_the_rank_that_it_would_have,
        moderation::items_of_a_frozen_subject_are_rejected,
        moderation::what_is_set_outlives_data_restarts_and_rollovers,
        moderation::lists_of_moderated_subjects_are_ordered_and_paged,
        moderation::many_subjects_are_hidden_at_once,
        moderation::removing_a_subject_ends_its_moderation_and_replacing_does_not,
        moderation::hidden_subjects_of_every_metric_return_with_their_scores,
        moderation::both_editions_know_what_is_set,
        moderation::a_subject_is_hidden_in_the_ranking_of_one_key,
        moderation::counters_and_kept_slots_of_a_frozen_subject_stay,
        seasons::an_item_counts_in_the_period_of_its_time,
        seasons::late_items_count_until_the_grace_is_over,
        seasons::sealed_periods_stay_in_the_archive_and_leave_it,
        seasons::an_id_counts_once_across_the_end_of_a_period,
        seasons::every_metric_begins_again_with_a_period,
        seasons::items_that_name_a_period_are_in_it_or_rejected,
        seasons::a_board_that_nobody_called_for_long_has_the_present_period,
        seasons::a_period_is_closed_by_hand,
        seasons::writes_and_reads_at_the_end_of_a_period_lose_nothing,
        seasons::a_board_with_a_season_takes_no_imports,
        seasons::a_late_item_that_is_refused_is_reported,
        seasons::an_item_that_names_its_period_is_a_duplicate_when_sent_again,
        seasons::each_period_has_as_many_keys_as_it_may_have,
        packing::a_packed_ranking_is_read_as_it_was,
        packing::rankings_of_every_kind_are_packed,
        packing::a_removed_subject_leaves_a_line_without_a_name,
        packing::a_packed_score_of_dropped_values_is_still_capped,
        packing::pages_go_past_sheets_without_names,
        packing::only_the_best_lines_are_kept_if_so_defined,
        packing::the_packing_of_the_best_lines_goes_on_after_its_end,
        packing::a_line_that_left_while_a_period_was_packed_does_not_come_back,
        packing::subjects_that_are_removed_while_a_period_is_packed_are_gone,
        packing::subjects_that_are_hidden_and_shown_while_a_period_is_packed_have_one_line,
        packing::many_subjects_are_removed_from_a_packed_period_at_once,
        packing::packed_periods_leave_the_archive_and_go_with_their_board,
        packing::a_period_is_packed_while_another_one_takes_late_items,
        packing::an_audit_finds_damaged_sheets_and_repairs_what_follows_from_others,
        distribution::a_distribution_is_that_of_the_lines,
        distribution::a_distribution_is_that_of_one_key,
        ordinal::each_line_has_a_rank_of_its_own_in_every_read,
        ordinal::ordinal_ranks_are_those_of_one_key,
        ordinal::earlier_ranks_are_ordinal_too,
        second_keys::sums_add_up_scores_and_second_keys,
        second_keys::second_keys_are_bounded_in_each_slot,
        second_keys::extremes_and_newest_values_have_the_key_of_their_item,
        first_and_last::equal_sums_are_ordered_by_their_newest_item,
        first_and_last::a_time_stays_when_an_item_is_taken_back_and_leaves_with_its_slot,
        first_and_last::a_score_below_zero_keeps_the_time_of_slots_that_cancel_each_other,
        first_and_last::scores_are_bounded_in_each_slot_whatever_their_time_is,
        first_and_last::extremes_and_newest_values_have_the_time_of_their_item,
        first_and_last::a_sample_of_a_total_says_when_it_was_reached,
        ties::ties_are_counted_by_every_read,
        ties::ties_of_one_key_are_counted,
        distribution::a_distribution_follows_the_window,
        merging::a_copied_board_is_equal,
        merging::a_copied_board_expires_and_counts_like_its_source,
        merging::a_merged_board_has_the_items_of_both,
        merging::merged_values_beyond_the_limit_are_dropped,
        merging::of_two_newest_values_of_the_same_time_the_present_one_stays,
        merging::sums_and_means_are_added_and_the_better_extreme_stays,
        merging::merged_values_are_handled_like_sightings_and_retractions,
        merging::a_merged_time_of_a_dropped_value_marks_results,
        merging::numbers_of_items_are_added_once,
        merging::a_merge_while_a_slot_is_retiring_is_exact,
        merging::an_import_refuses_samples_and_removals_while_it_is_open,
        merging::an_import_continues_after_a_restart,
        merging::a_walk_continues_or_is_lost_after_a_restart,
        imports::contents_that_are_not_of_the_track_are_refused,
        imports::each_piece_counts_once_whoever_sends_it,
        imports::a_begun_import_is_continued_after_its_last_pieces,
        imports::a_board_has_one_open_import,
        imports::a_board_remembers_a_limited_number_of_imports,
        imports::a_board_with_samples_begins_no_import,
        imports::a_board_of_counters_takes_no_imports,
        imports::an_import_ends_with_its_board,
        imports::contents_of_expired_slots_are_counted_and_left_out,
        imports::contents_beyond_the_bound_of_a_slot_are_refused,
        imports::a_piece_whose_caller_ended_halfway_counts_once,
        imports::pieces_and_increments_at_the_same_time_all_count,
        imports::several_imports_add_up,
        hostile::subjects_are_returned_unchanged,
        hostile::changes_to_a_subject_do_not_affect_other_subjects,
        hostile::ids_with_special_characters_are_distinct,
        hostile::boards_with_similar_names_are_independent,
        ids::repeated_ids_in_a_request_count_once,
        ids::repeated_ids_across_requests_and_instances_count_once,
        ids::a_repeated_id_with_another_amount_or_time_is_a_duplicate,
        ids::ids_are_scoped_to_a_subject_and_a_board,
        ids::ids_are_remembered_for_the_dedupe_horizon,
        ids::ids_are_remembered_as_long_as_defined,
        ids::an_id_is_remembered_until_its_item_leaves_a_window_with_an_additional_slot,
        ids::ids_are_remembered_for_at_most_a_day,
        ids::the_dedupe_horizon_starts_at_the_first_arrival,
        ids::ids_of_late_and_early_items_are_not_remembered,
        ids::ids_are_remembered_after_their_subject_is_removed,
        ids::ids_are_forgotten_when_their_board_is_removed,
        ranking::a_descending_board_breaks_ties_by_bytes_descending,
        ranking::an_ascending_board_breaks_ties_by_bytes_ascending,
        ranking::ties_share_a_rank_across_pages,
        ranking::pages_beyond_the_end_of_the_ranking_are_empty_or_short,
        ranking::a_ranking_of_thousands_of_subjects_pages_in_order,
        ranking::subjects_at_zero_are_unranked_and_negatives_rank_last,
        ranking::neighbors_are_cut_off_at_the_ends_of_the_ranking,
        ranking::an_unranked_subject_has_no_neighbors,
        ranking::lookup_returns_scores_in_the_order_of_the_request,
        ranking::lookup_returns_the_rank_on_the_whole_board,
        ranking::lookup_returns_the_ranks_of_a_retiring_window,
        ranking::standing_returns_the_rank_and_the_number_of_better_subjects,
        ranking::standing_of_an_unknown_subject_is_zero_and_unranked,
        places::pages_follow_from_place_to_place,
        places::a_place_need_not_have_a_line,
        places::a_ranking_without_lines_has_places,
        places::places_stay_when_their_subjects_leave,
        places::places_of_means_are_exact,
        places::nothing_unchanged_is_skipped_or_repeated,
        removing::removing_a_subject_clears_it_from_every_slot,
        removing::removing_an_unknown_subject_has_no_effect,
        removing::a_removed_subject_that_returns_starts_at_zero,
        removing::removed_amounts_are_not_subtracted_again_on_expiry,
        rolling::a_slot_expires_at_its_boundary,
        rolling::slots_expire_in_order_as_the_window_moves,
        rolling::expiry_of_a_slot_leaves_the_amounts_of_other_slots,
        rolling::many_slots_expire_in_one_move,
        rolling::a_board_whose_slots_all_expired_reads_empty_at_once,
        rolling::a_write_after_all_slots_expired_is_counted,
        rolling::the_window_moves_decades_in_one_step,
        rolling::slots_of_an_idle_board_expire,
        rolling::items_for_expired_slots_are_rejected,
        rolling::a_tumbling_board_restarts_at_the_boundary,
        rolling::a_window_of_2000_slots_is_counted_and_rolled_over,
        rows::a_row_is_replaced_only_if_it_is_as_expected,
        rows::of_concurrent_changes_of_a_row_exactly_one_succeeds,
        rows::concurrent_changes_of_different_rows_are_all_kept,
        rows::a_table_is_returned_only_if_its_version_is_not_known,
        rows::every_change_of_a_table_has_a_version_of_its_own,
        rows::tables_and_boards_do_not_affect_each_other,
        rows::a_repeated_change_changes_nothing,
        rows::ids_and_texts_are_returned_unchanged,
        rows::ids_and_texts_beyond_the_limits_are_refused,
        rows::a_table_has_at_most_10000_rows,
        rows::a_table_has_a_limited_number_of_bytes,
        windows::a_shorter_window_counts_the_newest_slots,
        windows::a_window_from_a_time_counts_the_slots_since_then,
        windows::a_range_beyond_the_window_is_an_error,
        windows::slots_of_a_standing_are_oldest_first,
        windows::full_cover_keeps_one_extra_slot,
        windows::every_result_states_its_window_and_time,
        windows::status_lists_nonempty_slots_with_their_subjects,
        zones::hourly_slots_across_the_spring_clock_change,
        zones::hourly_slots_across_the_autumn_clock_change,
        zones::daily_and_monthly_slots_follow_the_time_zone,
        zones::weekly_slots_start_on_monday,
        zones::a_skipped_calendar_day_has_no_slot,
        everything::every_metric_counts_on_the_system_clock,
        everything::every_metric_is_exact_under_concurrent_rollover,
        everything::every_metric_starts_empty_on_a_redefined_board,
        everything::every_metric_reads_the_same_through_another_instance,
        means::a_mean_covers_the_amounts_in_the_window,
        means::means_change_as_slots_expire,
        means::means_are_ranked_by_quotient,
        means::means_of_zero_or_less_are_ranked,
        means::means_of_fewer_than_min_samples_are_not_ranked,
        means::a_prior_draws_few_measurements_to_its_mean,
        means::means_equal_the_f64_quotient_bit_for_bit,
        means::sums_of_means_beyond_the_slot_bound_are_rejected,
        means::a_retracted_mean_item_is_subtracted_from_its_original_slot,
        means::means_with_a_count_of_zero_keep_their_slots,
        means::means_return_scores_and_count_ids_once,
        exports::an_export_is_the_ranking,
        exports::subjects_that_stay_are_exported_once,
        exports::an_export_of_a_board_that_was_defined_again_ends,
        several_windows::an_item_counts_in_every_window_that_reaches_back_to_it,
        several_windows::an_item_is_too_late_only_if_no_window_reaches_back_to_it,
        several_windows::windows_retire_each_at_its_own_time,
        several_windows::a_bound_passed_in_one_window_refuses_the_item_in_all,
        several_windows::items_of_a_sum_refused_in_one_window_are_tried_one_by_one,
        several_windows::an_id_counts_once_in_all_windows,
        several_windows::a_board_holds_what_boards_of_its_windows_hold,
        several_windows::a_subject_is_removed_from_every_window,
        several_windows::the_list_of_windows_is_part_of_the_definition,
        several_windows::a_batch_of_many_subjects_counts_in_every_window,
        extremes::an_extreme_is_the_best_value_of_all_slots,
        extremes::an_extreme_expires_with_its_slot,
        extremes::extremes_of_zero_or_less_are_ranked,
        extremes::late_values_of_an_extreme_count_in_their_slot,
        extremes::a_sample_can_replace_an_extreme_with_a_worse_value,
        extremes::an_extreme_worsened_by_a_sample_expires_with_its_slot,
        extremes::extremes_return_scores_and_count_ids_once,
        extremes::extremes_accept_the_largest_and_smallest_amounts,
        extremes::a_removed_extreme_starts_over,
        keys::each_key_has_a_ranking_of_its_own,
        keys::a_read_names_a_key_and_an_unknown_one_is_empty,
        keys::a_key_without_ranked_subjects_is_gone,
        keys::new_keys_are_refused_beyond_max_keys,
        keys::keys_of_one_batch_are_counted_one_by_one,
        keys::keys_and_names_of_every_form_are_distinct,
        keys::every_metric_ranks_each_key_as_the_oracle_does,
        keys::a_small_ranking_is_exact_while_a_slot_retires,
        keys::a_cancelled_subject_is_not_missed_while_a_slot_retires,
        kept::the_newest_slots_are_kept_beside_the_total,
        kept::kept_slots_are_deleted_and_never_subtracted,
        kept::kept_slots_answer_for_shorter_windows_and_earlier_times,
        kept::a_sample_moves_the_total_as_much_as_its_slot,
        kept::a_sample_moves_a_mean_of_all_time,
        kept::a_sample_is_the_newest_value_unless_a_later_slot_has_one,
        kept::the_fewest_samples_are_about_the_total,
        kept::a_sample_stamped_with_its_end_is_of_the_slot_before,
        kept::extremes_and_sketches_of_all_time_keep_slots_and_take_no_samples,
        latest::the_newest_value_is_the_score,
        latest::of_equal_times_the_later_arrival_wins,
        latest::a_score_expires_with_its_newest_slot_only,
        latest::newest_values_of_zero_or_less_are_ranked,
        latest::a_sample_replaces_the_newest_value_of_its_slot,
        latest::a_sample_stamped_with_its_end_is_newer_than_every_event_before_its_time,
        latest::newest_values_return_scores_and_count_ids_once,
        latest::the_newest_value_of_all_time_stays,
        forgetting::a_forgotten_value_leaves_all_tracks_without_a_tombstone,
        forgetting::values_of_expired_slots_are_forgotten_without_being_subtracted_twice,
        forgetting::values_of_frozen_subjects_are_forgotten_and_not_while_an_import_is_open,
        forgetting::a_value_is_forgotten_in_each_edition_that_stores_values,
        forgetting::a_value_is_forgotten_in_a_period_that_has_ended_and_still_takes_items,
        forgetting::a_fill_does_not_give_a_value_that_is_forgotten_meanwhile,
        distinct::a_new_value_counts_in_its_slot,
        distinct::a_repeated_value_in_the_same_slot_updates_only_its_time,
        distinct::a_value_seen_again_later_moves_to_the_newer_slot,
        distinct::an_expired_value_counts_as_new_when_seen_again,
        distinct::an_older_sighting_of_a_known_value_changes_nothing,
        distinct::a_late_value_counts_in_the_slot_of_its_time,
        distinct::distinct_counts_do_not_depend_on_the_order_of_arrival,
        distinct::concurrent_sightings_count_each_value_once,
        distinct::distinct_counts_of_shorter_windows_are_exact,
        distinct::values_are_paged_newest_first_with_ties_by_bytes,
        distinct::values_expire_with_the_window,
        distinct::values_with_special_characters_are_returned_unchanged,
        distinct::sightings_with_an_id_count_once,
        distinct::removed_subjects_have_no_values,
        distinct::each_board_has_its_own_values,
        distinct::a_subject_with_900_values_is_counted_and_paged,
        retracting::a_retraction_subtracts_from_the_slot_of_its_time,
        retracting::retractions_are_summed_with_the_other_items,
        retracting::a_retraction_older_than_the_window_has_no_effect,
        retracting::a_retraction_older_than_the_window_with_a_used_id_is_a_duplicate,
        retracting::a_retraction_with_an_id_counts_once,
        retracting::repeated_likes_and_retractions_count_each_user_once,
        retracting::a_retraction_wins_over_a_sighting_at_the_same_time,
        retracting::a_late_sighting_does_not_restore_a_retracted_value,
        retracting::a_tombstone_expires_with_its_slot,
        retracting::a_later_retraction_removes_the_value_from_the_slot_that_has_it,
        capping::the_least_recently_seen_value_is_dropped_at_the_cap,
        capping::of_equally_recent_values_the_smallest_bytes_are_dropped,
        capping::a_late_value_can_be_dropped_on_arrival,
        capping::capped_resets_when_the_dropped_values_have_expired,
        capping::expired_values_free_capacity,
        capping::retracted_values_free_capacity,
        capping::the_number_of_tombstones_is_limited_to_max_values,
        caps::a_person_adds_up_to_the_cap_in_a_day,
        caps::capped_items_that_are_taken_back_come_to_nothing,
        caps::caps_do_not_depend_on_the_order_of_arrival,
        caps::longer_slots_have_a_cap_for_each_of_their_days,
        caps::days_of_caps_begin_at_local_midnight,
        caps::ids_of_capped_items_are_remembered,
        caps::late_and_early_items_of_capped_boards_are_refused,
        caps::counters_survive_restarts_and_leave_with_their_subject,
        caps::a_person_who_is_forgotten_leaves_no_counter,
        caps::beyond_max_values_the_oldest_counter_is_dropped,
        caps::counters_of_keys_are_those_of_their_rankings,
        caps::counters_are_merged_by_their_counts,
        caps::a_fill_gives_the_counters_that_items_change_meanwhile,
        caps::editions_with_other_caps_count_each_by_its_own,
        caps::frozen_and_hidden_subjects_have_counters_as_others,
        caps::a_period_has_counters_of_its_own,
        caps::a_count_out_of_range_is_refused,
        caps::a_subject_with_many_persons_is_walked_and_removed,
        sketches::a_sketch_counts_a_repeated_value_once,
        sketches::sketches_of_slots_are_merged,
        sketches::estimates_are_within_three_standard_errors,
        sketches::a_removed_sketch_starts_over,
        samples::repeating_a_sample_changes_nothing,
        samples::a_later_sample_adjusts_the_ranking,
        samples::a_sample_of_zero_empties_its_slot,
        samples::samples_and_increments_of_a_batch_take_effect_in_order,
        samples::samples_are_placed_in_slots_by_the_boards_stamp,
        samples::samples_of_means_have_a_sum_and_a_count,
        samples::samples_beyond_the_slot_bound_are_rejected,
        samples::samples_with_an_id_count_once,
        unranked::an_unranked_board_returns_the_value_of_the_window,
        unranked::an_unranked_board_has_nothing_to_retire,
        unranked::an_unranked_board_rejects_items_older_than_the_window,
        unranked::an_unranked_board_counts_ids_once_within_the_horizon,
        unranked::concurrent_writers_of_an_unranked_board_lose_nothing,
        unranked::removing_an_unranked_subject_clears_all_its_slots,
        unranked::a_redefined_unranked_board_starts_empty,
        unranked::an_unranked_subject_with_2000_slots_is_counted,
        unranked::an_unranked_board_with_full_cover_has_an_extra_slot,
        unranked::idle_unranked_subjects_read_empty_and_can_start_over,
        looking_back::a_past_window_within_keep_is_read_exactly,
        looking_back::a_past_window_beyond_keep_is_an_error,
        looking_back::by_default_one_slot_beyond_the_window_is_kept,
        looking_back::a_past_window_can_start_at_a_given_time,
        looking_back::past_windows_are_read_for_every_supporting_metric,
        looking_back::past_windows_of_days_follow_the_time_zone,
        looking_back::late_items_count_in_past_windows,
        from_first::a_from_first_window_starts_at_the_first_event,
        from_first::a_from_first_window_starts_at_the_time_of_its_event,
        from_first::a_retraction_does_not_start_a_from_first_window,
        from_first::from_first_counters_respect_bounds_ids_and_removal,
        from_first::a_from_first_window_longer_than_time_ends_at_the_largest_timestamp,
        together::add_all_adds_to_boards_of_every_metric,
        together::add_all_returns_a_separate_result_for_each_board,
        together::add_all_applies_batches_of_the_same_board_in_order,
        together::concurrent_add_all_calls_lose_nothing,
        together::read_answers_each_query_separately,
        together::read_answers_500_queries_in_order,
        editions::a_board_gets_exchanges_and_loses_a_second_edition,
        editions::a_repeated_change_of_editions_is_harmless,
        editions::a_successor_of_a_board_without_samples_takes_imports_after_a_restart,
        both_editions::each_edition_holds_what_a_board_of_its_own_holds,
        both_editions::returned_scores_are_those_of_the_current_edition,
        both_editions::a_worse_sample_of_one_edition_loses_no_value_of_the_other,
        editions::items_of_one_edition_are_counted_by_reason,
        editions::retractions_count_in_each_edition_that_has_their_slot,
        editions::a_sum_refused_by_one_edition_is_tried_one_by_one_in_both,
        editions::amounts_are_summed_in_each_edition_that_takes_them,
        editions::a_sample_replaces_in_each_edition_that_takes_it,
        editions::a_subject_is_removed_from_both_editions,
        editions::imports_and_changes_of_editions_exclude_each_other,
        editions::a_removed_board_leaves_nothing_of_both_editions,
        editions::editions_survive_a_restart,
        stale::a_write_of_before_a_second_edition_counts_the_same_items_in_both,
        stale::a_write_whose_effect_on_an_edition_is_not_known_moves_the_beginning,
        stale::a_write_of_before_an_exchange_counts_in_the_same_editions,
        stale::a_write_of_before_an_edition_was_removed_counts_in_the_other_one,
        stale::other_calls_of_before_a_change_of_editions_change_nothing,
        stale::writers_that_know_nothing_of_changes_lose_and_double_nothing,
        filling::a_filled_edition_holds_what_a_board_of_its_own_holds,
        filling::slots_of_which_a_part_is_missing_are_not_filled,
        filling::a_fill_gives_back_what_only_the_second_edition_lost,
        filling::a_comparison_shows_both_editions_at_one_instant,
        tumbling::a_tumbling_day_ends_at_local_midnight,
        tumbling::a_tumbling_week_ends_at_the_end_of_the_local_sunday,
        tumbling::a_tumbling_month_ends_at_the_end_of_its_last_local_day,
        tumbling::a_tumbling_window_ends_where_the_definition_begins_the_next_one,
    ],
    in_steps: [
        movement::ranks_are_unknown_while_a_slot_retires,
        stepping::retiring_subtracts_each_amount_once,
        stepping::a_retiring_slot_is_reported_until_it_is_done,
        stepping::a_retire_step_touches_a_bounded_number_of_subjects,
        stepping::two_instances_retire_a_slot_together,
        stepping::a_retire_step_with_nothing_to_do_is_done,
        stepping::advanced_slots_are_reported_by_one_retire_step_only,
        stepping::removing_a_subject_clears_it_from_retiring_slots,
        stepping::audits_between_retire_steps_find_no_differences,
        stepping::writes_between_retire_steps_are_kept,
        stepping::retiring_continues_when_the_clock_advances_between_steps,
        stepping::a_full_expiry_between_retire_steps_empties_the_board,
        retiring::retiring_in_steps_matches_the_oracle_for_every_metric,
        retiring::retiring_slots_are_ranked_but_excluded_from_slot_reads,
        passing::portions_of_several_senders_count_each_item_once,
        passing::what_is_refused_for_good_is_passed,
        passing::a_portion_that_would_leave_a_hole_changes_nothing,
        passing::an_item_that_may_count_later_stops_its_lane,
        passing::samples_wait_for_the_end_of_an_import,
        passing::what_is_reached_survives_a_restart_and_ends_with_the_board,
        passing::a_portion_counts_in_both_editions_and_not_in_earlier_ones,
        passing::a_portion_of_any_metric_counts_what_a_batch_counts,
    ]
}
