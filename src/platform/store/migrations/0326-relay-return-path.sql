-- The envelope sender of all mail through the relay; null: a return path for each delivery (relays.md section 1).
ALTER TABLE relays ADD COLUMN return_path TEXT;
