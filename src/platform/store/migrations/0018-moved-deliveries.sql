-- The pool that a waiting delivery was moved to, in place of what its message asked for; null: not moved.
ALTER TABLE deliveries ADD COLUMN sending_pool TEXT;
