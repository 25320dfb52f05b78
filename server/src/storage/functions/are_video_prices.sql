-- What a second of video costs, by its resolution: {"720P": "0.10"}. Then tokens and pictures cost nothing beside it.
create or replace function are_video_prices(prices jsonb) returns boolean
language sql immutable
return jsonb_typeof(prices) = 'object'
  and prices <> '{}'
  and not jsonb_path_exists(
    prices, 'strict $.* ? (@.type() != "string" || !(@ like_regex "^[0-9]{1,18}([.][0-9]{1,18})?$"))'
  )
  and not jsonb_path_exists(prices, 'strict $.keyvalue() ? (!(@.key like_regex "^[1-9][0-9]{2,3}P$"))');
