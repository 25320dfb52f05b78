-- Whether these are prices of pictures by their size and quality, as decimal texts: {"1024x1024/high": "0.167"}.
create or replace function are_picture_prices(prices jsonb) returns boolean
language sql immutable
return jsonb_typeof(prices) = 'object'
  and prices <> '{}'
  and not jsonb_path_exists(
    prices, 'strict $.* ? (@.type() != "string" || !(@ like_regex "^[0-9]{1,18}([.][0-9]{1,18})?$"))'
  )
  and not jsonb_path_exists(
    prices, 'strict $.keyvalue() ? (!(@.key like_regex "^[A-Za-z0-9._-]{1,32}/[A-Za-z0-9._-]{1,32}$"))'
  );
