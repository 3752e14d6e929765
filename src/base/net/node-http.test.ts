import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

const SOURCES = join(import.meta.dirname, '../..')

for (const file of ['service.ts', 'platform/http/listening/listener.ts'])
  test(`Node's fetch is not loaded with ${file}`, async () => {
    const program = `
      await import(${JSON.stringify(join(SOURCES, file))})
      console.log(process.moduleLoadList.filter((name) => name.includes('undici')).join())`
    const run = promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program])
    assert.equal((await run).stdout, '\n', 'each thread would keep 2 MB for it: see base/net/node-http.ts')
  })
