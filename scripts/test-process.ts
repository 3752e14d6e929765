/**
 * Runs test files one after another, as `scripts/test.ts` orders them: loading and warming up the sources takes more
 * processor time than the tests of most files. Each file is a suite, so that its hooks are its own; test-events.ts
 * reports its end. It ends once the runner has disconnected and no file has left anything open.
 */
import { flushCompileCache } from 'node:module'
import { describe } from 'node:test'
import { pathToFileURL } from 'node:url'

/** `folder`: for the temporary files of this test file. */
export interface Order {
  file: string
  folder: string
}

process.on('message', ({ file, folder }: Order) => {
  process.env['TMPDIR'] = folder
  describe(file, async () => {
    await import(pathToFileURL(file).href)
    // For the services that its tests start, and for the other processes.
    flushCompileCache()
  })
})
