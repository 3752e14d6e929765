/** The sources of an earlier release, from the repository's history, with the libraries of this one. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../..')

const git = (...args: string[]): string =>
  execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }).trim()

/** Where the migrations are, and where earlier releases have them. */
const MIGRATIONS = ['src/platform/store/migrations/', 'src/store/migrations/']

const migrationsOf = (commit: string): number =>
  git('ls-tree', '--name-only', commit, ...MIGRATIONS).split('\n').length

/**
 * The newest tag or, while there is none, the newest commit of the main line that has fewer migrations than now; null
 * without a history. `steps`: skips that many further sets of migrations.
 */
export function earlierRelease(steps = 0): string | null {
  const [tag] = git('tag', '--merged', 'HEAD', '--sort=-creatordate').split('\n').filter(Boolean).slice(steps)
  if (tag !== undefined) return tag
  let known = migrationsOf('HEAD')
  let left = steps
  for (const commit of git('log', '--first-parent', '--format=%h', '--', ...MIGRATIONS).split('\n')) {
    const before = `${commit}~1`
    const count = migrationsOf(before)
    if (count >= known) continue
    if (left-- === 0) return git('rev-parse', '--short', before)
    known = count
  }
  return null
}

/** Writes its sources into `folder`. */
export function checkOut(commit: string, folder: string): void {
  mkdirSync(folder, { recursive: true })
  const archive = join(folder, 'sources.tar')
  git('archive', '--format=tar', '-o', archive, commit, 'src', 'package.json', 'tsconfig.json')
  execFileSync('tar', ['-xf', archive, '-C', folder])
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  mkdirSync(join(folder, 'web'), { recursive: true })
}
