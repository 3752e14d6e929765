-- Bulk mail of the domain names an address for complaints (RFC 9477), and has Gmail's Feedback-ID (domains.md D4).
ALTER TABLE domains ADD COLUMN cfbl_address INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domains ADD COLUMN feedback_id INTEGER NOT NULL DEFAULT 0;
