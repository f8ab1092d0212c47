//! The conformance suite for every store. Each behavior below is a separate test for each store.
//!
//! A behavior is a function of a new [`Site`]. It uses no connections, keys or files, and moves time with the simulated
//! clock.

mod adding;
mod auditing;
mod boards;
mod bounds;
mod capping;
mod clock;
mod concurrency;
mod distinct;
mod everything;
mod extremes;
mod from_first;
mod hostile;
mod ids;
mod looking_back;
mod means;
mod places;
mod ranking;
mod removing;
mod retiring;
mod retracting;
mod rolling;
mod samples;
mod sketches;
mod stepping;
mod together;
mod tumbling;
mod unranked;
mod windows;
mod zones;

use crate::redis_server::Engine;
use crate::site::{Kind, Site};

/// Generates a test of each behavior for each store. Behaviors under `in_steps` are tested only where retiring takes
/// steps, which it does not in the oracle. On Redis a behavior is tested on each available engine, one after another.
macro_rules! contract {
    (always: [$($room:ident::$behaviour:ident,)*], in_steps: [$($step_room:ident::$step:ident,)*]) => {
        mod oracle {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                super::$room::$behaviour(super::Site::new(super::Kind::Oracle).await).await;
            })*
        }
        contract! { for embedded, [super::Kind::Embedded]; $($room::$behaviour,)* $($step_room::$step,)* }
        contract! { for redis, super::Engine::available().into_iter().map(super::Kind::Redis);
            $($room::$behaviour,)* $($step_room::$step,)* }
        contract! { for cluster, super::Kind::clusters();
            $($room::$behaviour,)* $($step_room::$step,)* }
        contract! { for parts_3, super::Kind::of_parts(3);
            $($room::$behaviour,)* $($step_room::$step,)* }
        // On one engine only: the differences between engines are tested with fewer parts.
        contract! { for cluster_parts_16, super::Kind::clusters_of_parts(16).into_iter().take(1);
            $($room::$behaviour,)* $($step_room::$step,)* }
    };
    (for $store:ident, $kinds:expr; $($room:ident::$behaviour:ident,)*) => {
        mod $store {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                for kind in $kinds {
                    super::$room::$behaviour(super::Site::new(kind).await).await;
                }
            })*
        }
    };
}

contract! {
    always: [
        adding::answers_each_item_in_order,
        adding::adds_up_items_of_one_subject,
        adding::scores_come_from_the_same_step,
        adding::an_empty_batch_is_fine,
        adding::late_items_are_rejected_and_the_rest_counts,
        adding::a_little_early_counts_as_now,
        adding::boundaries_are_exact_to_the_millisecond,
        adding::decimals_are_just_units,
        adding::thousands_in_one_batch,
        adding::thousands_of_one_subject_in_one_batch,
        adding::amounts_of_zero_change_nothing,
        auditing::finds_nothing_wrong_at_any_time,
        auditing::a_repair_with_nothing_wrong_changes_nothing,
        auditing::an_empty_board_audits,
        boards::created_unchanged_conflict,
        boards::the_version_tells_of_boards_that_came_and_went,
        boards::a_definition_that_cannot_be_is_refused,
        boards::all_are_listed_by_name,
        boards::every_instance_knows_them_at_once,
        boards::undefine_answers_whether_it_was_there,
        boards::old_handles_are_told_that_the_board_changed,
        boards::defined_anew_it_starts_empty,
        boards::they_do_not_touch_each_other,
        bounds::a_slot_holds_its_bound_and_no_more,
        bounds::below_zero_too,
        bounds::a_refused_sum_is_tried_singly,
        bounds::what_is_refused_is_not_remembered,
        bounds::no_amount_overflows,
        bounds::a_sum_is_exact_however_far_it_goes_on_the_way,
        bounds::full_slots_of_either_sign_stay_exact,
        clock::moves_forward_only,
        clock::is_shared_by_all_instances,
        clock::the_system_clock_is_not_set,
        clock::starts_at_the_epoch,
        clock::reaches_the_end_of_time,
        concurrency::adds_from_everywhere_add_up,
        concurrency::an_id_sent_by_many_at_once_counts_once,
        concurrency::one_definition_wins,
        concurrency::rolling_over_while_writing_stays_exact,
        concurrency::removing_while_writing_stays_exact,
        concurrency::redefining_while_writing_stays_exact,
        hostile::subjects_come_back_as_they_went_in,
        hostile::subjects_do_not_touch_each_other,
        hostile::ids_are_data,
        hostile::board_names_do_not_touch_each_other,
        ids::count_once_in_a_request,
        ids::count_once_across_requests_and_instances,
        ids::a_duplicate_may_say_another_amount_or_time,
        ids::belong_to_a_subject_and_a_board,
        ids::are_remembered_for_the_horizon,
        ids::are_remembered_for_a_day_at_most,
        ids::are_remembered_from_the_first_arrival,
        ids::of_late_and_early_items_are_not_remembered,
        ids::outlive_the_removal_of_their_subject,
        ids::are_forgotten_with_their_board,
        ranking::highest_first_ties_by_bytes_descending,
        ranking::lowest_first_ties_by_bytes_ascending,
        ranking::ties_share_a_rank_across_pages,
        ranking::pages_end_where_the_ranking_does,
        ranking::thousands_of_lines_page_in_order,
        ranking::zeros_vanish_and_negatives_rank_below,
        ranking::neighbors_stop_at_the_edges,
        ranking::neighbors_of_nobody_are_none,
        ranking::lookup_answers_in_the_order_asked,
        ranking::lookup_returns_the_rank_on_the_whole_board,
        ranking::lookup_returns_the_ranks_of_a_retiring_window,
        ranking::standing_says_rank_and_who_is_better,
        ranking::an_unknown_subject_is_an_answer,
        places::pages_follow_from_place_to_place,
        places::a_place_need_not_have_a_line,
        places::a_ranking_without_lines_has_places,
        places::places_stay_when_their_subjects_leave,
        places::places_of_means_are_exact,
        places::nothing_unchanged_is_skipped_or_repeated,
        removing::takes_a_subject_out_of_every_slot,
        removing::nobody_is_removed_without_effect,
        removing::what_comes_back_starts_from_nothing,
        removing::what_was_removed_does_not_expire_again,
        rolling::a_slot_leaves_at_the_boundary,
        rolling::every_slot_leaves_in_its_turn,
        rolling::subjects_that_stay_keep_the_rest,
        rolling::many_slots_leave_at_once,
        rolling::all_expired_is_empty_at_once,
        rolling::what_is_written_after_everything_expired_counts,
        rolling::decades_pass_in_one_step,
        rolling::a_board_nobody_writes_to_rolls_on,
        rolling::expired_slots_take_nothing_more,
        rolling::a_tumbling_board_starts_over,
        rolling::two_thousand_slots,
        windows::counts_over_the_newest_slots,
        windows::counts_from_a_time,
        windows::reaching_beyond_the_window_is_an_error,
        windows::slots_of_a_standing_are_oldest_first,
        windows::full_cover_keeps_one_slot_more,
        windows::every_answer_says_what_it_is_about,
        windows::status_lists_the_slots_that_exist,
        zones::hours_over_the_spring_gap,
        zones::hours_over_the_autumn_overlap,
        zones::days_and_months_are_local,
        zones::weeks_start_on_monday,
        zones::a_day_that_never_was,
        everything::every_metric_counts_on_the_stores_own_clock,
        everything::every_metric_stays_exact_while_rolling_over,
        everything::every_metric_is_forgotten_with_its_board,
        everything::every_metric_may_be_read_through_any_instance,
        means::a_mean_is_of_what_is_left,
        means::means_change_as_slots_leave,
        means::means_rank_by_what_they_are,
        means::means_of_zero_and_below_are_ranked,
        means::means_of_too_few_are_not_ranked,
        means::means_are_the_same_to_the_last_bit,
        means::means_stay_within_their_bound,
        means::means_are_retracted_in_the_slot_of_their_twin,
        means::means_that_cancel_out_are_kept_in_their_slots,
        means::means_answer_scores_and_count_ids_once,
        extremes::an_extreme_is_the_best_of_all_slots,
        extremes::an_extreme_leaves_with_its_slot,
        extremes::extremes_of_zero_and_below_are_ranked,
        extremes::late_extremes_count_in_their_slot,
        extremes::a_sample_may_make_an_extreme_worse,
        extremes::what_a_sample_made_worse_leaves_in_its_turn,
        extremes::extremes_answer_scores_and_count_ids_once,
        extremes::extremes_hold_every_amount,
        extremes::removed_extremes_start_from_nothing,
        distinct::a_new_value_counts_in_its_slot,
        distinct::a_value_seen_again_in_its_slot_moves_its_time_only,
        distinct::a_value_seen_again_later_leaves_its_older_slot,
        distinct::a_value_from_outside_the_window_is_new_again,
        distinct::what_is_older_than_remembered_changes_nothing,
        distinct::a_late_value_counts_where_it_belongs,
        distinct::the_order_of_arrival_does_not_matter,
        distinct::sightings_at_once_count_each_value_once,
        distinct::shorter_windows_of_values_are_exact,
        distinct::values_page_newest_first_ties_by_bytes,
        distinct::values_leave_with_the_window,
        distinct::values_are_data,
        distinct::sightings_with_an_id_count_once,
        distinct::removed_subjects_have_no_values,
        distinct::boards_remember_values_of_their_own,
        distinct::thousands_of_values_of_one_subject,
        retracting::a_sum_is_retracted_in_the_slot_of_its_twin,
        retracting::retractions_add_up_with_the_rest,
        retracting::a_retraction_below_the_floor_does_nothing,
        retracting::a_retraction_with_an_id_counts_once,
        retracting::one_person_one_like,
        retracting::a_retraction_wins_ties,
        retracting::a_late_twin_is_not_brought_back,
        retracting::a_tombstone_goes_with_its_slot,
        retracting::a_retracted_value_leaves_its_slot_for_good,
        capping::the_value_seen_longest_ago_is_dropped,
        capping::of_values_seen_at_once_the_smallest_bytes_are_dropped,
        capping::a_late_value_may_be_dropped_at_once,
        capping::capped_ends_when_what_was_dropped_has_left,
        capping::values_that_expired_make_room,
        capping::retracted_values_make_room,
        capping::no_more_tombstones_than_values_are_kept,
        sketches::a_value_counts_about_once,
        sketches::sketches_of_slots_are_merged,
        sketches::estimates_are_within_their_error,
        sketches::a_removed_sketch_starts_from_nothing,
        samples::a_sample_sent_again_changes_nothing,
        samples::a_later_sample_adjusts_the_ranking,
        samples::a_sample_of_nothing_empties_its_slot,
        samples::samples_and_increments_of_a_batch_take_effect_in_order,
        samples::samples_belong_to_the_slot_they_are_stamped_with,
        samples::samples_of_means_carry_how_often,
        samples::samples_stay_within_the_bound,
        samples::samples_with_an_id_count_once,
        unranked::they_answer_the_value_of_the_window,
        unranked::they_have_nothing_to_roll_over,
        unranked::they_take_nothing_from_below_the_window,
        unranked::they_count_ids_once_and_forget_them,
        unranked::they_lose_nothing_to_writers_at_once,
        unranked::a_subject_is_removed_whole,
        unranked::a_board_defined_anew_knows_nothing_of_the_old,
        unranked::two_thousand_slots_of_a_subject,
        unranked::full_cover_has_its_extra_slot_unranked_too,
        unranked::idle_subjects_answer_nothing_and_start_again,
        looking_back::a_window_inside_keep_is_read_as_it_was,
        looking_back::beyond_keep_is_an_error,
        looking_back::one_slot_beyond_the_window_is_kept_unless_told,
        looking_back::a_past_window_may_begin_at_a_time,
        looking_back::every_metric_that_can_looks_back,
        looking_back::looking_back_counts_local_days,
        looking_back::late_items_count_in_the_past_they_belong_to,
        from_first::a_life_begins_with_the_first_event_and_ends_a_window_later,
        from_first::a_life_begins_when_its_event_happened,
        from_first::retractions_only_take_from_a_life,
        from_first::lives_have_bounds_ids_and_an_end,
        from_first::a_life_longer_than_time_goes_on_to_its_end,
        together::an_event_feeds_many_boards,
        together::each_board_takes_what_it_can,
        together::a_board_may_be_named_twice,
        together::adding_to_many_boards_at_once_adds_up,
        together::many_questions_are_answered_each_for_itself,
        together::hundreds_of_questions_come_back_in_order,
        tumbling::a_day_ends_at_local_midnight,
        tumbling::a_week_ends_with_sunday_where_the_board_is,
        tumbling::a_month_ends_with_its_last_day,
    ],
    in_steps: [
        stepping::each_amount_is_subtracted_once,
        stepping::what_retires_shows_until_it_is_done,
        stepping::a_step_is_bounded,
        stepping::two_instances_share_the_work,
        stepping::nothing_to_do_is_done,
        stepping::advancing_is_reported_once,
        stepping::removal_reaches_retiring_slots,
        stepping::audits_are_right_between_any_two_steps,
        stepping::writes_between_steps_are_kept,
        stepping::the_clock_moves_on_between_steps,
        stepping::everything_expires_between_steps,
        retiring::every_metric_leaves_in_steps,
        retiring::what_retires_still_ranks_and_is_not_read,
    ]
}
