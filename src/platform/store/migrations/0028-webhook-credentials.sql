-- User info of a webhook's URL, `user:password`, sealed. `url` shows it masked.
ALTER TABLE domain_webhooks ADD COLUMN credentials_sealed BLOB;
ALTER TABLE account_webhooks ADD COLUMN credentials_sealed BLOB;
