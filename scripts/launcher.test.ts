import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { serviceFlags } from '../test/support/node-flags.ts'
import { plantFiles } from '../test/support/plant-files.ts'

const ROOT = resolve(import.meta.dirname, '..')
/** Where `sh`, `dirname` and `readlink` are. */
const TOOLS = '/usr/bin:/bin'

/** An installation in a folder with a space, and a folder `path` for PATH with two links on the way to it. */
function install(context: TestContext): { app: string; path: string } {
  const root = plantFiles(context, {
    'my app/src/main.ts':
      'console.log(JSON.stringify({ words: process.argv.slice(2), flags: process.execArgv }))\n',
  })
  const app = join(root, 'my app')
  const path = join(root, 'path')
  for (const folder of [join(app, 'bin'), join(app, 'node_modules/.bin'), path])
    mkdirSync(folder, { recursive: true })
  for (const file of ['sendwright', 'node-settings.sh'])
    copyFileSync(join(ROOT, 'bin', file), join(app, 'bin', file))
  symlinkSync('../my app/bin/sendwright', join(path, 'first'))
  symlinkSync(join(path, 'first'), join(path, 'sendwright'))
  return { app, path }
}

/** A `node` that only prints its version. */
function plantNode(folder: string, version: string): void {
  writeFileSync(join(folder, 'node'), `#!/bin/sh\necho ${version}\n`)
  chmodSync(join(folder, 'node'), 0o755)
}

function run(path: string, words: readonly string[], env = {}, cwd = '/') {
  return spawnSync(join(path, 'sendwright'), words, {
    cwd,
    encoding: 'utf8',
    env: { PATH: `${path}:${TOOLS}`, ...env },
  })
}

test('it runs what was built until a source or the lock file changes', (context) => {
  const { app, path } = install(context)
  symlinkSync(process.execPath, join(app, 'node_modules/.bin/node'))
  writeFileSync(join(app, 'src/main.ts'), "console.log('source')\n")
  writeFileSync(join(app, 'package-lock.json'), '{}')
  const build = () => {
    mkdirSync(join(app, 'dist'), { recursive: true })
    writeFileSync(join(app, 'dist/main.js'), "console.log('built')\n")
    // Later than the files above, whatever the clock's steps.
    const later = new Date(Date.now() + 60_000)
    utimesSync(join(app, 'dist/main.js'), later, later)
  }
  const ran = () => run(path, []).stdout.trim()
  assert.equal(ran(), 'source')
  build()
  assert.equal(ran(), 'built')
  utimesSync(join(app, 'dist/main.js'), new Date(0), new Date(0))
  assert.equal(ran(), 'source')
  build()
  // A release has no sources.
  rmSync(join(app, 'src'), { recursive: true })
  utimesSync(join(app, 'dist/main.js'), new Date(0), new Date(0))
  assert.equal(ran(), 'built')
})

test('called through links, it passes every argument on as it is', (context) => {
  const { app, path } = install(context)
  symlinkSync(process.execPath, join(app, 'node_modules/.bin/node'))
  const words = ['send', 'a b', '', '*', "it's"]
  const { status, stdout } = run(path, words)
  assert.deepEqual(JSON.parse(stdout), { words, flags: [] })
  assert.equal(status, 0)
})

test('without an installed Node it takes the one in PATH', (context) => {
  const { path } = install(context)
  symlinkSync(process.execPath, join(path, 'node'))
  assert.deepEqual(JSON.parse(run(path, ['keys', 'list']).stdout), { words: ['keys', 'list'], flags: [] })
})

test('the service has the flags of node-settings.sh, and npm start starts it by the launcher', (context) => {
  const { app, path } = install(context)
  symlinkSync(process.execPath, join(app, 'node_modules/.bin/node'))
  const flags = serviceFlags()
  assert.ok(flags.length > 0 && flags.every((flag) => flag.startsWith('--')), flags.join(' '))
  const { stdout } = run(path, ['serve'], { SENDWRIGHT_MEMORY: 'normal' })
  assert.deepEqual(JSON.parse(stdout), { words: ['serve'], flags })
  const file = readFileSync(join(ROOT, 'package.json'), 'utf8')
  assert.equal(
    (JSON.parse(file) as { scripts: { start: string } }).scripts.start,
    'exec bin/sendwright serve',
  )
})

test('compiled sources are kept beside the code, or where the environment says', (context) => {
  const { app, path } = install(context)
  symlinkSync(process.execPath, join(app, 'node_modules/.bin/node'))
  writeFileSync(join(app, 'src/main.ts'), 'console.log(process.env.NODE_COMPILE_CACHE)\n')
  const folder = join(app, 'node_modules/.cache/sendwright')
  assert.equal(run(path, ['serve']).stdout.trim(), folder)
  assert.ok(existsSync(folder))
  const elsewhere = join(path, 'cache')
  assert.equal(run(path, ['serve'], { NODE_COMPILE_CACHE: elsewhere }).stdout.trim(), elsewhere)
})

test('settings come from a file too, and those of the environment stay', (context) => {
  const { app, path } = install(context)
  symlinkSync(process.execPath, join(app, 'node_modules/.bin/node'))
  writeFileSync(join(app, 'settings'), 'SENDWRIGHT_A="a b"\n# SENDWRIGHT_C=c\nSENDWRIGHT_B=file\n')
  writeFileSync(
    join(app, 'src/main.ts'),
    `console.log(JSON.stringify(Object.entries(process.env).filter(([name]) => name.startsWith('SENDWRIGHT_'))))\n`,
  )
  const { stdout } = run(path, ['keys'], {
    SENDWRIGHT_ENV_FILE: join(app, 'settings'),
    SENDWRIGHT_B: 'environment',
  })
  assert.deepEqual(Object.fromEntries(JSON.parse(stdout) as [string, string][]), {
    SENDWRIGHT_A: 'a b',
    SENDWRIGHT_B: 'environment',
  })
})

test('the file of settings beside the program is read, one of the current folder is not', (context) => {
  const { app, path } = install(context)
  symlinkSync(process.execPath, join(app, 'node_modules/.bin/node'))
  writeFileSync(join(app, 'src/main.ts'), 'console.log(process.env.SENDWRIGHT_A ?? null)\n')
  writeFileSync(join(path, 'sendwright.env'), 'SENDWRIGHT_A=current\n')
  const said = (env = {}) => run(path, ['keys'], env, path).stdout.trim()
  assert.equal(said(), 'null')
  writeFileSync(join(app, 'sendwright.env'), 'SENDWRIGHT_A=beside\n')
  assert.equal(said(), 'beside')
  assert.equal(said({ SENDWRIGHT_ENV_FILE: '' }), 'null')
  assert.equal(said({ SENDWRIGHT_ENV_FILE: join(path, 'sendwright.env') }), 'current')
})

test('a file of settings that cannot be read ends with a sentence', (context) => {
  const { app, path } = install(context)
  symlinkSync(process.execPath, join(app, 'node_modules/.bin/node'))
  for (const file of [app, join(app, 'none')]) {
    const { status, stdout, stderr } = run(path, ['keys'], { SENDWRIGHT_ENV_FILE: file })
    assert.deepEqual([status, stdout], [1, ''])
    assert.match(
      stderr,
      /^sendwright: cannot read the settings in '.*', which SENDWRIGHT_ENV_FILE names, as user \S+\n$/,
    )
  }
})

const cpuinfo = (vendor: string, family: number, flags: string) =>
  [
    'processor\t: 0',
    `vendor_id\t: ${vendor}`,
    `cpu family\t: ${family}`,
    'model name\t: a name: with a colon',
    `flags\t\t: fpu ${flags}`,
    '',
  ].join('\n')
const ZEN_3 = cpuinfo('AuthenticAMD', 25, 'avx2 bmi2 adx')

/** A line of /proc/meminfo, and files below /sys/fs/cgroup. */
interface Machine {
  memoryKb: number
  /** /proc/self/cgroup. */
  groups: string
  limits: Record<string, string>
}

const GIB = 1024 ** 3
const LARGE: Machine = { memoryKb: 8 * 1024 ** 2, groups: '0::/\n', limits: {} }

/** SENDWRIGHT_MEMORY of the service, and the flags of Node that it has more than others; null: a machine without the files. */
function memoryOn(context: TestContext, machine: Machine | null, env = {}, file?: string) {
  const { app, path } = install(context)
  symlinkSync(process.execPath, join(app, 'node_modules/.bin/node'))
  const report = '{ memory: process.env.SENDWRIGHT_MEMORY ?? null, flags: process.execArgv }'
  writeFileSync(join(app, 'src/main.ts'), `console.log(JSON.stringify(${report}))\n`)
  const files = plantFiles(context, {
    ...(machine && { meminfo: `MemTotal:       ${machine.memoryKb} kB\nMemFree: 9 kB\n` }),
    ...(machine && { own: machine.groups }),
    ...Object.fromEntries(Object.entries(machine?.limits ?? {}).map(([at, text]) => [`group/${at}`, text])),
    ...(file !== undefined && { settings: file }),
  })
  const settings = join(app, 'bin/node-settings.sh')
  let text = readFileSync(settings, 'utf8')
  for (const [from, to] of [
    ['/proc/meminfo', 'meminfo'],
    ['/proc/self/cgroup', 'own'],
    ['/sys/fs/cgroup', 'group'],
  ] as const)
    text = text.replaceAll(from, `'${join(files, to)}'`)
  writeFileSync(settings, text)
  const named = file === undefined ? {} : { SENDWRIGHT_ENV_FILE: join(files, 'settings') }
  const { stdout, stderr } = run(path, ['serve'], { ...env, ...named })
  assert.equal(stderr, '')
  const { memory, flags } = JSON.parse(stdout) as { memory: string | null; flags: string[] }
  const more = flags.filter((flag) => !flag.startsWith('--env-file')).slice(serviceFlags().length)
  return { memory, more }
}

const SMALL_FLAGS = ['--max-semi-space-size=8', '--max-old-space-size=256']
const SMALL = { memory: 'small', more: SMALL_FLAGS }

test('less than 1 GiB of the machine or of a control group makes the service small', (context) => {
  const none = { memory: null, more: [] }
  const first = (path: string) => `3:cpuset:/x\n4:memory:${path}\n0::/\n`
  for (const [machine, expected] of [
    [LARGE, none],
    [null, none],
    [{ ...LARGE, memoryKb: 1024 ** 2 }, none],
    [{ ...LARGE, memoryKb: 1024 ** 2 - 1 }, SMALL],
    // Version 2: of the group itself, of one above it, and of a container that sees its own group at the top.
    [{ ...LARGE, groups: '0::/a/b\n', limits: { 'a/b/memory.max': `${GIB / 2}\n` } }, SMALL],
    [
      { ...LARGE, groups: '0::/a/b\n', limits: { 'a/memory.max': '1000\n', 'a/b/memory.max': 'max\n' } },
      SMALL,
    ],
    [{ ...LARGE, groups: '0::/../host\n', limits: { 'memory.max': `${GIB - 1}\n` } }, SMALL],
    [{ ...LARGE, groups: '0::/a\n', limits: { 'a/memory.max': `${GIB}\n` } }, none],
    [{ ...LARGE, groups: '0::/a\n', limits: { 'other/memory.max': '1000\n' } }, none],
    // Version 1.
    [{ ...LARGE, groups: first('/a b'), limits: { 'memory/a b/memory.limit_in_bytes': '1000\n' } }, SMALL],
    [{ ...LARGE, groups: first('/docker/1'), limits: { 'memory/memory.limit_in_bytes': '1000\n' } }, SMALL],
    [
      { ...LARGE, groups: first('/'), limits: { 'memory/memory.limit_in_bytes': '9223372036854771712\n' } },
      none,
    ],
  ] as const)
    assert.deepEqual(memoryOn(context, machine, {}), expected, JSON.stringify(machine))
})

test('SENDWRIGHT_MEMORY decides, from the environment before the file of settings', (context) => {
  const scarce = { ...LARGE, memoryKb: 500_000 }
  const by = (machine: Machine, env: Record<string, string>, file?: string) =>
    memoryOn(context, machine, env, file)
  assert.deepEqual(by(LARGE, { SENDWRIGHT_MEMORY: 'small' }), SMALL)
  assert.deepEqual(by(scarce, { SENDWRIGHT_MEMORY: 'normal' }), { memory: 'normal', more: [] })
  assert.deepEqual(by(scarce, { SENDWRIGHT_MEMORY: '' }), SMALL)
  // The service refuses it.
  assert.deepEqual(by(scarce, { SENDWRIGHT_MEMORY: 'tiny' }), { memory: 'tiny', more: [] })
  for (const line of [
    'SENDWRIGHT_MEMORY=small',
    ' export SENDWRIGHT_MEMORY = "small" # a small box\r',
    "SENDWRIGHT_MEMORY=normal\nSENDWRIGHT_MEMORY='small'",
  ])
    assert.deepEqual(by(LARGE, {}, `# SENDWRIGHT_MEMORY=normal\n${line}\n`), SMALL, line)
  assert.deepEqual(by(scarce, {}, 'SENDWRIGHT_MEMORY=normal'), { memory: 'normal', more: [] })
  assert.deepEqual(by(scarce, {}, 'SENDWRIGHT_MEMORY_X=normal\n'), SMALL)
  assert.deepEqual(by(LARGE, { SENDWRIGHT_MEMORY: 'small' }, 'SENDWRIGHT_MEMORY=normal'), SMALL)
})

/** What OPENSSL_ia32cap is in the service, on a machine with this /proc/cpuinfo; null for no such file. */
function mask(context: TestContext, cpuinfo: string | null, words = ['serve'], env = {}): string | null {
  const { app, path } = install(context)
  symlinkSync(process.execPath, join(app, 'node_modules/.bin/node'))
  writeFileSync(
    join(app, 'src/main.ts'),
    'console.log(JSON.stringify(process.env.OPENSSL_ia32cap ?? null))\n',
  )
  const file = join(path, 'cpuinfo')
  if (cpuinfo !== null) writeFileSync(file, cpuinfo)
  const settings = join(app, 'bin/node-settings.sh')
  writeFileSync(settings, readFileSync(settings, 'utf8').replaceAll('/proc/cpuinfo', `'${file}'`))
  const { stdout, stderr } = run(path, words, env)
  assert.equal(stderr, '')
  return JSON.parse(stdout) as string | null
}

test('on Zen 3 the service has OpenSSL sign without ADX', (context) => {
  assert.equal(mask(context, `${ZEN_3}\n${ZEN_3}`), ':~0x80000')
  assert.equal(mask(context, cpuinfo('AuthenticAMD', 25, 'adx bmi2 avx2')), ':~0x80000')
  assert.equal(mask(context, ZEN_3, ['keys', 'list']), null)
  for (const own of [':~0x100', '']) {
    assert.equal(
      mask(context, ZEN_3, ['serve'], { OPENSSL_ia32cap: own }),
      own,
      "the user's own setting stands",
    )
  }
})

test('on other processors OpenSSL is left alone', (context) => {
  for (const other of [
    cpuinfo('AuthenticAMD', 25, 'avx2 bmi2 adx avx512ifma'),
    cpuinfo('AuthenticAMD', 25, 'avx2 bmi2'),
    cpuinfo('AuthenticAMD', 25, 'bmi2 adx'),
    cpuinfo('AuthenticAMD', 25, 'xavx2 avx2x bmi2 adx'),
    cpuinfo('AuthenticAMD', 23, 'avx2 bmi2 adx'),
    cpuinfo('GenuineIntel', 25, 'avx2 bmi2 adx'),
    'processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\n',
    '',
    null,
  ]) {
    assert.equal(mask(context, other), null, String(other))
  }
})

test('the service has two arenas of malloc, or as many as the environment says', (context) => {
  const { app, path } = install(context)
  symlinkSync(process.execPath, join(app, 'node_modules/.bin/node'))
  writeFileSync(join(app, 'src/main.ts'), 'console.log(process.env.MALLOC_ARENA_MAX)\n')
  const arenas = (words: string[], env = {}) => run(path, words, env).stdout.trim()
  assert.equal(arenas(['serve']), '2')
  assert.equal(arenas(['serve'], { MALLOC_ARENA_MAX: '8' }), '8')
  assert.equal(arenas(['keys', 'list']), 'undefined')
})

test('an old Node, or a strange answer, is refused with what to do', (context) => {
  const { path } = install(context)
  for (const version of ['v20.20.2', 'v9.0.0', 'v23.11.1', 'strange', '']) {
    plantNode(path, version)
    const { status, stdout, stderr } = run(path, ['serve'])
    assert.equal(status, 1, version)
    assert.equal(stdout, '')
    assert.match(stderr, /needs Node 24 or newer, found .*run 'npm ci' in .*my app/)
  }
})
