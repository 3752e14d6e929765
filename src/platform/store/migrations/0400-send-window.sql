-- Hours in which mail of the domain is sent, as `Mon-Fri 09:00-17:00 Europe/Berlin`; null: at any time (messages.md rule 46).
ALTER TABLE domains ADD COLUMN send_window TEXT;
