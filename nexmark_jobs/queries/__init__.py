"""The Nexmark queries, one module each."""

from __future__ import annotations

from nexmark_jobs.queries import (
    q00_pass_through,
    q01_currency_conversion,
    q02_selection,
    q03_local_item_suggestion,
    q04_average_price_for_category,
    q05_hot_items,
    q06_average_selling_price_by_seller,
    q07_highest_bid,
    q08_monitor_new_users,
    q09_winning_bids,
    q10_log_to_file_system,
    q11_user_sessions,
    q12_processing_time_windows,
    q13_bounded_side_input_join,
    q14_calculation,
    q15_bidding_statistics,
    q16_channel_statistics,
    q17_auction_statistics,
    q18_find_last_bid,
    q19_auction_top_10_price,
    q20_expand_bid_with_auction,
    q21_add_channel_id,
    q22_get_url_directories,
    q23_join_bid_person_auction,
)
from nexmark_jobs.queries.formulation import Formulation, Query, Source, Streams

__all__ = ["QUERIES", "Formulation", "Query", "Source", "Streams"]

QUERIES: dict[str, Query] = {
    query.name: query
    for query in (
        q00_pass_through.QUERY,
        q01_currency_conversion.QUERY,
        q02_selection.QUERY,
        q03_local_item_suggestion.QUERY,
        q04_average_price_for_category.QUERY,
        q05_hot_items.QUERY,
        q06_average_selling_price_by_seller.QUERY,
        q07_highest_bid.QUERY,
        q08_monitor_new_users.QUERY,
        q09_winning_bids.QUERY,
        q10_log_to_file_system.QUERY,
        q11_user_sessions.QUERY,
        q12_processing_time_windows.QUERY,
        q13_bounded_side_input_join.QUERY,
        q14_calculation.QUERY,
        q14_calculation.PYTHON_UDF_QUERY,
        q15_bidding_statistics.QUERY,
        q16_channel_statistics.QUERY,
        q17_auction_statistics.QUERY,
        q18_find_last_bid.QUERY,
        q19_auction_top_10_price.QUERY,
        q20_expand_bid_with_auction.QUERY,
        q21_add_channel_id.QUERY,
        q22_get_url_directories.QUERY,
        q23_join_bid_person_auction.QUERY,
    )
}
"""Every query by its name."""
