/**
 * The Debian package: the program with its libraries and its runtime below `/usr/lib/sendwright`, a unit for systemd,
 * the settings in `/etc/sendwright/sendwright.env`, the data in `/var/lib/sendwright`, a manual page and completion for bash. Made by dpkg-deb alone, so
 * that it can be made on any machine that has it.
 */
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { COMMANDS } from '../../src/cli/commands.ts'
import { completionScript, SHELLS } from '../../src/cli/completion.ts'
import { manPage } from './man-page.ts'
import { type Processor, run } from './tree.ts'

const ARCHITECTURES: Record<Processor, string> = { x64: 'amd64', arm64: 'arm64' }
const SCRIPTS = ['postinst', 'prerm', 'postrm']
const CONFIGURATION = '/etc/sendwright/sendwright.env'

export interface DebianOptions {
  /** The project's folder. */
  root: string
  /** The program with its libraries; it is moved into the package's folder. */
  tree: string
  /** An empty folder to work in. */
  work: string
  processor: Processor
  /** Compresses quickly instead of well. */
  quick: boolean
  /** Replaces the version, for tests of upgrades. */
  version?: string
}

/** Makes `sendwright_<version>_<architecture>.deb` in `folder` and returns its path. Needs dpkg-deb. */
export async function buildDebian(folder: string, options: DebianOptions): Promise<string> {
  const { root, tree, work, processor } = options
  const from = join(root, 'deploy/debian')
  const manifest = JSON.parse(readFileSync(join(tree, 'package.json'), 'utf8')) as { version: string }
  const version = options.version ?? manifest.version
  const base = join(work, 'package')
  const put = (source: string, path: string, mode: number) => {
    mkdirSync(join(base, path, '..'), { recursive: true })
    cpSync(join(from, source), join(base, path))
    chmodSync(join(base, path), mode)
  }
  put('sendwright.service', 'usr/lib/systemd/system/sendwright.service', 0o644)
  put('sendwright.env', CONFIGURATION.slice(1), 0o640)
  const write = (path: string, content: string | Uint8Array) => {
    mkdirSync(join(base, path, '..'), { recursive: true })
    writeFileSync(join(base, path), content)
  }
  write('usr/share/man/man1/sendwright.1.gz', gzipSync(await manPage(version), { level: 9 }))
  write('usr/share/bash-completion/completions/sendwright', await completionScript(SHELLS.bash, COMMANDS))
  put('copyright', 'usr/share/doc/sendwright/copyright', 0o644)
  put('sendwright', 'usr/bin/sendwright', 0o755)
  renameSync(tree, join(base, 'usr/lib/sendwright'))
  for (const script of SCRIPTS) put(script, `DEBIAN/${script}`, 0o755)
  writeFileSync(join(base, 'DEBIAN/conffiles'), `${CONFIGURATION}\n`)
  const sizeKb = Math.ceil(sizeOf(base) / 1024)
  const control = readFileSync(join(from, 'control'), 'utf8')
    .replace('@VERSION@', version)
    .replace('@ARCHITECTURE@', ARCHITECTURES[processor])
    .replace('@SIZE@', String(sizeKb))
  writeFileSync(join(base, 'DEBIAN/control'), control)
  makeReadable(base)
  const file = join(folder, `sendwright_${version}_${ARCHITECTURES[processor]}.deb`)
  const compression = options.quick ? ['-Zgzip', '-z1'] : ['-Zxz']
  run('dpkg-deb', ['--root-owner-group', ...compression, '--build', base, file], work)
  return file
}

/** Everybody may read the program, whatever the umask was; the settings keep their mode. */
function makeReadable(folder: string): void {
  chmodSync(folder, 0o755)
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) makeReadable(path)
    else if (entry.isFile() && !path.endsWith(CONFIGURATION))
      chmodSync(path, lstatSync(path).mode & 0o100 ? 0o755 : 0o644)
  }
}

function sizeOf(folder: string): number {
  let bytes = 0
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) bytes += lstatSync(join(entry.parentPath, entry.name)).size
  return bytes
}
