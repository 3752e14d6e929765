-- The newest decision on a content, however many of its messages wait or were decided.
CREATE INDEX content_holds_decision ON content_holds (digest, decided_at) WHERE decision IS NOT NULL;
