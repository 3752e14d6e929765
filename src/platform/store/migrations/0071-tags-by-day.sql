-- Tags of a domain are counted by day from now on, as those of an account: their hours were a tenth of all figures (decision
-- 81). Split 1 is tags; unit 0 is the hour, 1 the day.

-- The rows of days whose time has passed exist. Those of later days are set to the sum of their hours, which is complete,
-- also where a roll-up has begun the day's row.
INSERT INTO figures (scope, split, unit, start_at, tag, recipient_domain, provider, ip, pool, country, device, bot,
  accepted_incoming, accepted_outgoing, delivered_smtp, delivered_http, delivered_optimized, delivered_first,
  delivered_later, failed_temporary, failed_temporary_espblock, rate_limited, failed_permanent,
  failed_suppress_bounce, failed_suppress_unsubscribe, failed_suppress_complaint, failed_bounce, failed_soft,
  failed_delayed_bounce, failed_old, failed_permanent_espblock, failed_webhook, failed_optimized, stored, opened,
  opened_unique, clicked, clicked_unique, unsubscribed, complained, accepted_listed, archived)
SELECT scope, 1, 1, start_at - start_at % 86400000, tag, '', '', '', '', '', '', '',
  sum(accepted_incoming), sum(accepted_outgoing), sum(delivered_smtp), sum(delivered_http), sum(delivered_optimized),
  sum(delivered_first), sum(delivered_later), sum(failed_temporary), sum(failed_temporary_espblock),
  sum(rate_limited), sum(failed_permanent), sum(failed_suppress_bounce), sum(failed_suppress_unsubscribe),
  sum(failed_suppress_complaint), sum(failed_bounce), sum(failed_soft), sum(failed_delayed_bounce), sum(failed_old),
  sum(failed_permanent_espblock), sum(failed_webhook), sum(failed_optimized), sum(stored), sum(opened),
  sum(opened_unique), sum(clicked), sum(clicked_unique), sum(unsubscribed), sum(complained), sum(accepted_listed),
  sum(archived)
FROM figure_scopes CROSS JOIN figures
WHERE scope = no AND split = 1 AND unit = 0
  AND start_at - start_at % 86400000 >= (SELECT until FROM figure_places WHERE unit = 1)
GROUP BY scope, start_at - start_at % 86400000, tag
ON CONFLICT (scope, split, unit, start_at, tag, recipient_domain, provider, ip, pool, country, device, bot) DO UPDATE SET
  accepted_incoming = excluded.accepted_incoming, accepted_outgoing = excluded.accepted_outgoing, delivered_smtp =
  excluded.delivered_smtp, delivered_http = excluded.delivered_http, delivered_optimized =
  excluded.delivered_optimized, delivered_first = excluded.delivered_first, delivered_later =
  excluded.delivered_later, failed_temporary = excluded.failed_temporary, failed_temporary_espblock =
  excluded.failed_temporary_espblock, rate_limited = excluded.rate_limited, failed_permanent =
  excluded.failed_permanent, failed_suppress_bounce = excluded.failed_suppress_bounce, failed_suppress_unsubscribe =
  excluded.failed_suppress_unsubscribe, failed_suppress_complaint = excluded.failed_suppress_complaint, failed_bounce
  = excluded.failed_bounce, failed_soft = excluded.failed_soft, failed_delayed_bounce =
  excluded.failed_delayed_bounce, failed_old = excluded.failed_old, failed_permanent_espblock =
  excluded.failed_permanent_espblock, failed_webhook = excluded.failed_webhook, failed_optimized =
  excluded.failed_optimized, stored = excluded.stored, opened = excluded.opened, opened_unique =
  excluded.opened_unique, clicked = excluded.clicked, clicked_unique = excluded.clicked_unique, unsubscribed =
  excluded.unsubscribed, complained = excluded.complained, accepted_listed = excluded.accepted_listed, archived =
  excluded.archived;

DELETE FROM figures WHERE scope IN (SELECT no FROM figure_scopes) AND split = 1 AND unit = 0;
