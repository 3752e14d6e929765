/**
 * SQLite without syncs: loaded first in a process (`node --import`) of a test run. On a disk the syncs of its many small commits take longer
 * than the tests themselves. What a killed process has written stays with the system; only a loss of power would take it, and
 * the tests of that, and of the order of syncs, start their services without this (`synced` of service-process.ts).
 * A database that is opened while SENDWRIGHT_TEST_SYNCED is set syncs.
 */
import { DatabaseSync } from 'node:sqlite'

const { exec } = DatabaseSync.prototype

DatabaseSync.prototype.exec = function (sql) {
  const isLeftOut = sql === 'PRAGMA synchronous = FULL' && !process.env['SENDWRIGHT_TEST_SYNCED']
  exec.call(this, isLeftOut ? 'PRAGMA synchronous = OFF' : sql)
}
