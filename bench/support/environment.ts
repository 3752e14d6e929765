/** The environment that figures depend on, reported with them. */
import { spawnSync } from 'node:child_process'
import { readFileSync, statfsSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os'
import { peerVersions } from './postfix.ts'

export type Environment = Record<string, string>

export function describeEnvironment(folder: string): Environment {
  return {
    date: new Date().toISOString().slice(0, 16).replace('T', ' '),
    system: prettyName(),
    kernel: release(),
    cpu: `${cpus()[0]?.model.trim() ?? 'unknown'}, ${availableParallelism()} cores`,
    memory: `${(totalmem() / 2 ** 30).toFixed(0)} GiB`,
    'file system': fileSystem(folder),
    'load before': loadavg()
      .map((value) => value.toFixed(2))
      .join(' '),
    node: process.version,
    sqlite: process.versions['sqlite'] ?? 'unknown',
    sendwright: commit(),
    ...peerVersions(),
  }
}

function prettyName(): string {
  try {
    return /^PRETTY_NAME="(.*)"$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'unknown'
  } catch {
    return 'unknown'
  }
}

const MAGIC: Record<number, string> = {
  61267: 'ext4',
  1481003842: 'xfs',
  2435016766: 'btrfs',
  16914836: 'tmpfs (no real sync: figures mean nothing)',
  2035054128: 'overlay',
  801189825: 'zfs',
}

function fileSystem(folder: string): string {
  const { type } = statfsSync(folder)
  return MAGIC[type] ?? `0x${type.toString(16)}`
}

function commit(): string {
  const git = (...args: string[]) =>
    spawnSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8' }).stdout?.trim() ?? ''
  const changed = git('status', '--porcelain', '--', '../../src') === '' ? '' : ' with changes'
  return `${git('rev-parse', '--short', 'HEAD') || 'unknown'}${changed}`
}
