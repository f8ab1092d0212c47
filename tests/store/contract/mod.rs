//! One conformance suite for every store: each behaviour below is a test of its own for each of them.
//!
//! A behaviour is a function of a fresh [`Site`]. It says nothing of connections, keys or files, and drives time by
//! the simulated clock.

mod adding;
mod auditing;
mod boards;
mod bounds;
mod clock;
mod concurrency;
mod hostile;
mod ids;
mod ranking;
mod removing;
mod rolling;
mod stepping;
mod windows;
mod zones;

use crate::redis_server::Engine;
use crate::site::{Kind, Site};

/// Makes a test of each behaviour for each store; those under `in_steps` only where retiring takes steps, which
/// the oracle's does not. On Redis a behaviour is shown on each engine there is, one after the other.
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
        ranking::standing_says_rank_and_who_is_better,
        ranking::an_unknown_subject_is_an_answer,
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
    ]
}
