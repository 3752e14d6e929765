-- PostgreSQL: events and their tags lie in partitions by time (decision 151). The tables that are there become the first
-- partition, from the beginning to the end of time, which needs no look at their rows. The job `event-partitions` ends it
-- and adds further ones. Statements of the release before find the same names and columns.
-- only postgres
-- A long reader must not make all writers wait behind this.
DO $$
DECLARE
  tries bigint := 0;
BEGIN
  LOOP
    BEGIN
      PERFORM set_config('lock_timeout', '200ms', true);
      LOCK TABLE events, event_tags IN ACCESS EXCLUSIVE MODE;
      EXIT;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
      tries := tries + 1;
      IF tries = 300 THEN
        RAISE EXCEPTION 'Cannot take the table of events: another session, perhaps a dump, has read it for two minutes';
      END IF;
      PERFORM pg_sleep(0.2);
    END;
  END LOOP;
  PERFORM set_config('lock_timeout', '0', true);
END $$;

ALTER TABLE events RENAME TO events_first;
ALTER TABLE event_tags RENAME TO event_tags_first;
DROP TRIGGER event_tags_add ON events_first;
DROP TRIGGER event_tags_remove ON events_first;

CREATE TABLE events (LIKE events_first INCLUDING DEFAULTS) PARTITION BY RANGE (timestamp_us);
ALTER TABLE events ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY;
DO $$
BEGIN
  EXECUTE format('SELECT setval(pg_get_serial_sequence(''events'', ''seq''), last_value, is_called) FROM %s',
    pg_get_serial_sequence('events_first', 'seq'));
END $$;
ALTER TABLE events_first ALTER COLUMN seq DROP IDENTITY;
ALTER TABLE events ATTACH PARTITION events_first FOR VALUES FROM (MINVALUE) TO (MAXVALUE);

CREATE TABLE event_tags (LIKE event_tags_first) PARTITION BY RANGE (timestamp_us);
ALTER TABLE event_tags ATTACH PARTITION event_tags_first FOR VALUES FROM (MINVALUE) TO (MAXVALUE);

CREATE TRIGGER event_tags_add AFTER INSERT ON events FOR EACH ROW
  WHEN (NEW.tags_json IS NOT NULL) EXECUTE FUNCTION event_tags_add();
CREATE TRIGGER event_tags_remove AFTER DELETE ON events FOR EACH ROW
  WHEN (OLD.tags_json IS NOT NULL) EXECUTE FUNCTION event_tags_remove();

CREATE OR REPLACE VIEW event_keys AS
  SELECT seq, tx, account_id, domain_name, event, timestamp_us, message_id, recipient_hash FROM events;
CREATE OR REPLACE VIEW event_tag_keys AS SELECT domain_name, tag, event, timestamp_us, seq FROM event_tags;

-- The events of a domain in the order of their commits. They may be in any partition, as an event may be committed long after
-- its time; so the plan is made once for each connection: making it takes longer than reading.
CREATE FUNCTION events_since(of_domain text, accounts text[], names text[], low_us bigint, high_us bigint,
    from_tx bigint, from_seq bigint, to_tx bigint, to_seq bigint, is_up bigint, size bigint)
  RETURNS TABLE (seq bigint, tx bigint, timestamp_us bigint)
  LANGUAGE plpgsql STABLE SET plan_cache_mode TO force_generic_plan AS $$
BEGIN
  IF is_up = 1 THEN
    RETURN QUERY SELECT e.seq, e.tx, e.timestamp_us FROM events AS e
      WHERE e.domain_name = of_domain AND (e.tx, e.seq) >= (from_tx, from_seq) AND (e.tx, e.seq) < (to_tx, to_seq)
        AND e.account_id || '' = ANY (accounts) AND (names IS NULL OR e.event || '' = ANY (names))
        AND e.timestamp_us + 0 >= low_us AND e.timestamp_us + 0 <= high_us
      ORDER BY e.tx ASC, e.seq ASC LIMIT size;
  ELSE
    RETURN QUERY SELECT e.seq, e.tx, e.timestamp_us FROM events AS e
      WHERE e.domain_name = of_domain AND (e.tx, e.seq) >= (from_tx, from_seq) AND (e.tx, e.seq) < (to_tx, to_seq)
        AND e.account_id || '' = ANY (accounts) AND (names IS NULL OR e.event || '' = ANY (names))
        AND e.timestamp_us + 0 >= low_us AND e.timestamp_us + 0 <= high_us
      ORDER BY e.tx DESC, e.seq DESC LIMIT size;
  END IF;
END $$;
-- all
