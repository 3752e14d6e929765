-- Figures by week, of the countries of each domain, and of pairs of a tag and a country or provider (decision 110).

-- Unit 3 is the week. The roll-up makes those of all days that are kept.
INSERT INTO figure_places (unit, written, until) VALUES (3, 0, 0);

-- Pairs are made of the days that end from now on. Unix milliseconds.
ALTER TABLE figure_scopes ADD COLUMN pairs_since INTEGER NOT NULL DEFAULT 0;
UPDATE figure_scopes SET pairs_since = (SELECT until FROM figure_places WHERE unit = 1) WHERE domain_name = '';

-- Split 6 is countries, which are in split 3 with devices and bots; unit 1 is the day, 2 the month.
INSERT INTO figures (scope, split, unit, start_at, tag, recipient_domain, provider, ip, pool, country, device, bot,
  accepted_incoming, accepted_outgoing, delivered_smtp, delivered_http, delivered_optimized, delivered_first,
  delivered_later, failed_temporary, failed_temporary_espblock, rate_limited, failed_permanent,
  failed_suppress_bounce, failed_suppress_unsubscribe, failed_suppress_complaint, failed_bounce, failed_soft,
  failed_delayed_bounce, failed_old, failed_permanent_espblock, failed_webhook, failed_optimized, stored, opened,
  opened_unique, clicked, clicked_unique, unsubscribed, complained, accepted_listed, test_delivered, archived)
SELECT scope, 6, figures.unit, start_at, '', '', '', '', '', country, '', '',
  sum(accepted_incoming), sum(accepted_outgoing), sum(delivered_smtp), sum(delivered_http), sum(delivered_optimized),
  sum(delivered_first), sum(delivered_later), sum(failed_temporary), sum(failed_temporary_espblock),
  sum(rate_limited), sum(failed_permanent), sum(failed_suppress_bounce), sum(failed_suppress_unsubscribe),
  sum(failed_suppress_complaint), sum(failed_bounce), sum(failed_soft), sum(failed_delayed_bounce), sum(failed_old),
  sum(failed_permanent_espblock), sum(failed_webhook), sum(failed_optimized), sum(stored), sum(opened),
  sum(opened_unique), sum(clicked), sum(clicked_unique), sum(unsubscribed), sum(complained), sum(accepted_listed),
  sum(test_delivered), sum(archived)
FROM figure_scopes CROSS JOIN figure_places CROSS JOIN figures
WHERE domain_name <> '' AND figure_places.unit IN (1, 2) AND scope = no AND split = 3
  AND figures.unit = figure_places.unit AND start_at < figure_places.until
GROUP BY scope, figures.unit, start_at, country;
