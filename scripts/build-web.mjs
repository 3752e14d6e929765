/**
 * Builds the dashboard, `web/` into `web/dist/`; run by `npm ci` and `npm install` (script "prepare"), whatever
 * Node they run under: hence plain JavaScript for Node 20.
 *
 * Nothing is done, quietly, where there is nothing to build (no web/index.html), nothing to build with (an install
 * without development packages) or nothing new (the build is younger than every source). A build that fails
 * ends with its exit code, and so does the install. Argument: the project's folder, for tests.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = resolve(process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url)))
const web = join(root, 'web')
const builtPage = join(web, 'dist/index.html')
const vite = join(root, 'node_modules/vite/bin/vite.js')
/** Files outside web/ that change the result: versions of libraries, the guides, the changelog, and this script. */
const OUTER_SOURCES = ['docs', 'CHANGELOG.md', 'package.json', 'package-lock.json', 'scripts/build-web.mjs']

/** The latest change in milliseconds; a folder changes when a file in it is added or removed. */
function youngest(path) {
  if (!existsSync(path)) return 0
  const stat = statSync(path)
  if (!stat.isDirectory()) return stat.mtimeMs
  const inner = readdirSync(path).filter((name) => name !== 'node_modules' && name !== 'dist')
  return Math.max(stat.mtimeMs, ...inner.map((name) => youngest(join(path, name))))
}

function isUpToDate() {
  if (!existsSync(builtPage)) return false
  const sources = [web, ...OUTER_SOURCES.map((name) => join(root, name))]
  return statSync(builtPage).mtimeMs >= Math.max(...sources.map(youngest))
}

/** Exit code of Vite, run by the project's own Node where it is installed. */
function build() {
  const own = join(root, 'node_modules/.bin/node')
  const node = existsSync(own) ? own : process.execPath
  const flags = ['build', 'web', '--outDir', 'dist', '--emptyOutDir', '--logLevel', 'warn']
  const { status, error, signal } = spawnSync(node, [vite, ...flags], { cwd: root, stdio: 'inherit' })
  if (status !== 0) console.error(`Cannot build web/: ${error?.message ?? signal ?? `exit code ${status}`}`)
  return status ?? 1
}

if (existsSync(join(web, 'index.html')) && existsSync(vite) && !isUpToDate()) process.exitCode = build()
