/**
 * SQLite without syncs: loaded first in a process (`node --import`) of a test run. On a disk the syncs of its many small commits take longer
 * than the tests themselves. What a killed process has written stays with the system; only a loss of power would take it, and
 * the tests of that, and of the order of syncs, start their services without this (`synced` of service-process.ts).
 */
import { DatabaseSync } from 'node:sqlite'

const { exec } = DatabaseSync.prototype

DatabaseSync.prototype.exec = function (sql) {
  exec.call(this, sql === 'PRAGMA synchronous = FULL' ? 'PRAGMA synchronous = OFF' : sql)
}
