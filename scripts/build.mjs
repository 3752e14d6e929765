/**
 * Builds what `npm start` serves: the dashboard, `web/` into `web/dist/`, and the program, `src/` into `dist/` as a release
 * has it. Run by `npm ci` and `npm install` (script "prepare"), whatever Node they run under: hence plain JavaScript for
 * Node 20.
 *
 * Nothing is done, quietly, where there is nothing to build, nothing to build with (an install without development
 * packages) or nothing new (the build is younger than every source). A build that fails ends with its exit code, and so does
 * the install. Argument: the project's folder, for tests.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = resolve(process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url)))
const inRoot = (name) => join(root, name)
const OWN_NODE = inRoot('node_modules/.bin/node')

const DASHBOARD = {
  name: 'web/',
  source: 'web/index.html',
  tool: 'node_modules/vite/bin/vite.js',
  made: 'web/dist/index.html',
  /** What changes the result: versions of libraries, the guides, the changelog, and this script. */
  sources: ['web', 'docs', 'CHANGELOG.md', 'package.json', 'package-lock.json', 'scripts/build.mjs'],
  run: () =>
    run(
      'node_modules/vite/bin/vite.js',
      'build',
      'web',
      '--outDir',
      'dist',
      '--emptyOutDir',
      '--logLevel',
      'warn',
    ),
}

/** Another build may run at the same time. */
const NEW = `dist.new-${process.pid}`

/** bin/sendwright runs it as long as it is younger than the sources. */
const PROGRAM = {
  name: 'src/',
  source: 'src/main.ts',
  tool: 'node_modules/rolldown/package.json',
  made: 'dist/main.js',
  sources: ['src', 'package-lock.json', 'scripts/build.mjs', 'scripts/release/bundle.ts'],
  run() {
    // Node 20 alone runs neither the bundler's script nor the program, and bin/sendwright says so.
    if (!existsSync(OWN_NODE) && !process.features.typescript) return 0
    const begun = new Date()
    const status = run('scripts/release/bundle.ts', 'src', NEW)
    if (status !== 0) {
      rmSync(inRoot(NEW), { recursive: true, force: true })
      return status
    }
    // A source that changed meanwhile is younger than this.
    utimesSync(inRoot(`${NEW}/main.js`), begun, begun)
    rmSync(inRoot('dist'), { recursive: true, force: true })
    renameSync(inRoot(NEW), inRoot('dist'))
    return 0
  },
}

/**
 * The latest change in milliseconds; a folder changes when a file in it is added or removed. By the time that nobody can set:
 * an older version that was unpacked over this one is a change. bin/sendwright judges the program alike, by `find`: a start
 * cannot ask Node first, and not every system has that `find`.
 */
function youngest(path) {
  if (!existsSync(path)) return 0
  const stat = statSync(path)
  if (!stat.isDirectory()) return stat.ctimeMs
  const inner = readdirSync(path).filter((name) => name !== 'node_modules' && name !== 'dist')
  return Math.max(stat.ctimeMs, ...inner.map((name) => youngest(join(path, name))))
}

/** Runs a script by the project's own Node where it is installed. @returns its exit code */
function run(script, ...words) {
  const node = existsSync(OWN_NODE) ? OWN_NODE : process.execPath
  const { status, error, signal } = spawnSync(node, [inRoot(script), ...words], {
    cwd: root,
    stdio: 'inherit',
  })
  if (status === null) console.error(error?.message ?? signal)
  return status ?? 1
}

for (const { name, source, tool, made, sources, run } of [DASHBOARD, PROGRAM]) {
  if (!existsSync(inRoot(source)) || !existsSync(inRoot(tool))) continue
  const isNew =
    existsSync(inRoot(made)) &&
    statSync(inRoot(made)).mtimeMs >= Math.max(...sources.map((path) => youngest(inRoot(path))))
  if (isNew) continue
  const status = run()
  if (status !== 0) {
    console.error(`Cannot build ${name}`)
    process.exitCode = status
  }
}
