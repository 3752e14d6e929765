/** A backup as the command line asks about it, and what its manifest says. */
import { flag, integer, list, named, nullable, object, oneOf, rfc3339, text } from '../../base/shape.ts'

export const PROGRESS = object('How far one step is', {
  step: oneOf('What is being done', ['database', 'blobs', 'checksums', 'integrity', 'files']),
  doneBytes: integer('Done', { unit: 'bytes' }),
  totalBytes: integer('0: unknown', { unit: 'bytes' }),
})

export const MANIFEST = object('What the backup contains', {
  format: integer('Version of the manifest'),
  madeAt: rfc3339('Start of the backup, which contains all mail accepted before'),
  version: text('Version of Sendwright'),
  schemaVersion: integer('Of the database'),
  withSecret: flag('It includes the sealing secret'),
  counts: object('Rows and files', {
    messages: integer('Messages'),
    waiting: integer('Deliveries that are not done'),
    events: integer('Events'),
    domains: integer('Domains'),
    blobs: integer('Files of messages'),
  }),
  missingBlobs: list('Blobs that rows name but that did not exist: lost before this backup', text('Name')),
})

export const BACKUP = named('Backup', 'A backup of the running service', {
  id: text('Identifier'),
  state: oneOf('How far it is', ['running', 'done', 'failed']),
  progress: nullable(PROGRESS),
  manifest: nullable(
    object('What it contains; null until it is done', {
      ...MANIFEST.fields,
      sizeBytes: integer('All of its files', { unit: 'bytes' }),
    }),
  ),
  error: nullable(text('Why it failed, for the operator')),
})
