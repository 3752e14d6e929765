import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { temporaryFolder } from '../../test/support/stores.ts'
import { opensslFeatures } from './processor.ts'

const cpuinfo = (vendor: string, family: number, flags: string) =>
  [
    'processor\t: 0',
    `vendor_id\t: ${vendor}`,
    `cpu family\t: ${family}`,
    `flags\t\t: fpu ${flags} sse`,
    '',
  ].join('\n')
const ZEN_3 = cpuinfo('AuthenticAMD', 25, 'avx2 bmi2 adx')

test('OpenSSL signs without ADX on Zen 3 only', () => {
  assert.equal(opensslFeatures(`${ZEN_3}\n${ZEN_3}`), ':~0x80000')
  for (const other of [
    cpuinfo('AuthenticAMD', 25, 'avx2 bmi2 adx avx512ifma'),
    cpuinfo('AuthenticAMD', 25, 'avx2 bmi2'),
    cpuinfo('AuthenticAMD', 25, 'bmi2 adx'),
    cpuinfo('AuthenticAMD', 23, 'avx2 bmi2 adx'),
    cpuinfo('GenuineIntel', 25, 'avx2 bmi2 adx'),
    'processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\n',
    '',
  ]) {
    assert.equal(opensslFeatures(other), null, other)
  }
})

/** A program that begins as `serve` does, with `rest` behind that, and a Zen 3 to be told of. */
async function plant(
  t: TestContext,
  rest: string,
): Promise<{ folder: string; zen3: string; script: string }> {
  const folder = await temporaryFolder(t)
  const [zen3, script] = [join(folder, 'cpuinfo'), join(folder, 'main.mjs')]
  writeFileSync(zen3, ZEN_3)
  const from = JSON.stringify(join(import.meta.dirname, 'processor.ts'))
  writeFileSync(
    script,
    `import { restartTuned } from ${from}
const { env, pid, execArgv: flags, argv: [, , ...args] } = process
restartTuned(args[0])
${rest}\n`,
  )
  return { folder, zen3, script }
}

test('the process starts anew once, as it was, with what OpenSSL is told', async (t) => {
  const { folder, zen3, script } = await plant(
    t,
    'console.log(JSON.stringify({ mask: env.OPENSSL_ia32cap, kept: env.KEPT, pid, flags, args }))',
  )
  const run = async (file: string, env: Record<string, string>) => {
    const running = promisify(execFile)(process.execPath, ['--v8-pool-size=1', script, file, 'two words'], {
      env: { KEPT: 'yes', ...env },
    })
    const { stdout } = await running
    return { pid: running.child.pid, printed: JSON.parse(stdout) as unknown }
  }
  const expected = (pid: number | undefined, file: string, mask?: string) => ({
    ...(mask === undefined ? {} : { mask }),
    kept: 'yes',
    pid,
    flags: ['--v8-pool-size=1'],
    args: [file, 'two words'],
  })
  const tuned = await run(zen3, {})
  assert.deepEqual(tuned.printed, expected(tuned.pid, zen3, ':~0x80000'))
  const told = await run(zen3, { OPENSSL_ia32cap: ':~0x100' })
  assert.deepEqual(told.printed, expected(told.pid, zen3, ':~0x100'), "the user's own setting stands")
  const elsewhere = await run(join(folder, 'none'), {})
  assert.deepEqual(elsewhere.printed, expected(elsewhere.pid, join(folder, 'none')))
})

test('a process that talks to its parent stays as it is', async (t) => {
  const { zen3, script } = await plant(t, 'process.send({ mask: env.OPENSSL_ia32cap })\nprocess.disconnect()')
  const child = spawn(process.execPath, [script, zen3], {
    env: {},
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  t.after(() => child.kill())
  assert.deepEqual(await once(child, 'message').then(([told]) => told), {})
})
