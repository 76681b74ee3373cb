//! One suite for all backends: every case below runs on each of them.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod cases;
mod expiry;
mod leases;
mod model;
mod places;

/// Makes a test of each case on each backend.
macro_rules! suite {
    ($($module:ident: $($case:ident)*;)*) => {
        suite! { @backend memory Memory [$($($module $case)*)*] }
        suite! { @backend disk Disk [$($($module $case)*)*] }
        suite! { @backend redis Redis [$($($module $case)*)*] }
        /// One Cluster for all cases, because it takes time to start.
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn every_case_on_a_cluster() {
            let mut place = places::Cluster::start();
            $($(
                place.clear(stringify!($case));
                $module::$case(&place).await;
            )*)*
        }
    };
    (@backend $name:ident $place:ident [$($module:ident $case:ident)*]) => {
        mod $name {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$module::$case(&super::places::$place::start()).await;
                }
            )*
        }
    };
}

suite! {
    cases:
        what_is_settled_is_there_after_a_restart
        what_is_not_settled_is_seen_but_not_durable
        batches_have_their_effect_in_order
        sessions_and_plugins_do_not_see_each_other
        many_sessions_at_once_do_not_see_each_other
        clearing_removes_entries_and_version_of_one_plugin
        a_cleared_area_keeps_its_version
        a_migration_is_one_batch
        large_and_odd_values_are_kept
        the_operator_sees_what_is_stored
        the_operator_clears_what_is_stored
        the_plugins_of_a_session_are_listed
        the_operator_sees_since_when_a_plugin_is_absent
        a_closed_session_writes_nothing;
    leases:
        an_open_session_is_refused_with_its_owner
        a_dropped_session_is_released
        a_living_owner_keeps_its_session
        a_killed_owner_is_taken_over_and_leaves_a_whole_batch
        a_session_is_open_once_however_many_try;
    expiry:
        a_read_extends_a_time_of_its_own
        a_turn_keeps_default_times_from_running_out
        closing_a_session_ends_its_turn
        what_expired_before_a_turn_stays_expired
        kept_entries_live_as_long_as_the_session
        the_session_bounds_all_times
        expired_entries_are_removed_for_good
        expired_sessions_are_invisible_and_removed;
    model:
        random_operations_agree_with_a_model;
}
