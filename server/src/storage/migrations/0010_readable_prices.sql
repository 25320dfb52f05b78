-- A numeric can be NaN, which is larger than everything, infinite, or finer than what is read. None of them is a price.

alter table price_versions
  add constraint unit_price_is_readable check (unit_price < 1e18 and scale(unit_price) <= 18),
  add constraint provider_cost_is_readable check (provider_cost < 1e18 and scale(provider_cost) <= 18);

alter table account_prices
  add constraint unit_price_is_readable check (unit_price < 1e18 and scale(unit_price) <= 18);
