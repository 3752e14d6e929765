/** The functions of docs/webhooks.md that check signatures, run in their languages with the test vector of the API's page. */
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { fencedBlocks } from '../support/documents.ts'
import { HANG_MS } from '../support/hang.ts'
import { temporaryFolder } from '../support/stores.ts'

/** webhooks.md rule 17. */
const KEY = 'key-test'
const GENUINE = {
  timestamp: '1780315200',
  token: '7c1f0d93ab42e65d08b7a1c9f3e2544d6a80be17d9c2f5a304',
  signature: '18de98732dc963b1e01a1ccab349fc7c057a83230b08b131d4302d4a2440c725',
}
const FORGED = { ...GENUINE, timestamp: '1780315201' }

interface Language {
  program: string
  /** To see whether the program is there; null: the tests need it anyway. */
  probe: string[] | null
  file: string
  /** The whole program around the code: prints the two results, `true false` in any spelling. */
  whole(code: string, genuine: string, forged: string): string
  call(signature: typeof GENUINE): string
}

const quoted = ({ timestamp, token, signature }: typeof GENUINE) =>
  `"${timestamp}", "${token}", "${signature}"`
const pairs = (signature: typeof GENUINE, sign: string) =>
  Object.entries(signature)
    .map(([name, value]) => `"${name}" ${sign} "${value}"`)
    .join(', ')

const LANGUAGES: Readonly<Record<string, Language>> = {
  js: {
    program: process.execPath,
    probe: null,
    file: 'check.mjs',
    call: (signature) => `isGenuine({${pairs(signature, ':')}}, '${KEY}')`,
    whole: (code, one, other) => `${code}\nconsole.log(${one}, ${other})`,
  },
  python: {
    program: 'python3',
    probe: ['--version'],
    file: 'check.py',
    call: (signature) => `is_genuine({${pairs(signature, ':')}}, '${KEY}')`,
    whole: (code, one, other) => `${code}\nprint(${one}, ${other})`,
  },
  php: {
    program: 'php',
    probe: ['--version'],
    file: 'check.php',
    call: (signature) => `isGenuine([${pairs(signature, '=>')}], '${KEY}')`,
    whole: (code, one, other) => `<?php\n${code}\necho json_encode(${one}), ' ', json_encode(${other});`,
  },
  ruby: {
    program: 'ruby',
    probe: ['--version'],
    file: 'check.rb',
    call: (signature) => `genuine?({${pairs(signature, '=>')}}, '${KEY}')`,
    whole: (code, one, other) => `${code}\nprint ${one}, ' ', ${other}`,
  },
  java: {
    program: 'java',
    probe: ['--version'],
    file: 'Check.java',
    call: (signature) => `isGenuine(${quoted(signature)}, "${KEY}")`,
    whole: (code, one, other) =>
      `class Check {\n${code}\npublic static void main(String[] a) throws Exception { System.out.print(${one} + " " + ${other}); }\n}`,
  },
}

const blocks = new Map(
  fencedBlocks()
    .filter(({ place }) => place.startsWith('docs/webhooks.md:'))
    .map(({ language, text }) => [language, text]),
)

for (const [name, { program, probe, file, call, whole }] of Object.entries(LANGUAGES)) {
  test(`${name}: the genuine signature is accepted, a changed one is not`, async (t) => {
    if (probe !== null && spawnSync(program, probe).status !== 0) {
      t.diagnostic(`no ${program} on this machine: its code was not run`)
      return
    }
    const code = blocks.get(name)
    assert.ok(code, 'docs/webhooks.md has it')
    const path = join(await temporaryFolder(t), file)
    await writeFile(path, whole(code, call(GENUINE), call(FORGED)))
    const { stdout } = await promisify(execFile)(program, [path], { timeout: HANG_MS })
    assert.equal(stdout.trim().toLowerCase(), 'true false')
  })
}
