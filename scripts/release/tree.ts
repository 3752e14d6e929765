/** The released program as a folder: what the packages of every kind contain. */
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bundleSources } from './bundle.ts'
import { type Lock, releaseLock, releaseManifest } from './manifest.ts'

/** Files and folders that are taken as they are. */
const COPIED = ['bin', 'web/dist', 'README.md', 'CHANGELOG.md', 'SECURITY.md', 'LICENSE', 'docs']

/** Parts of the runtime's package that nothing here needs: headers for native addons, and its manual. */
const UNUSED = ['include', 'share', 'CHANGELOG.md', 'README.md']

/** Runs a command to its end and returns its standard output. @throws Error with its output when it fails */
export function run(command: string, args: readonly string[], cwd: string): string {
  const { status, error, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  if (error) throw error
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}:\n${stdout}${stderr}`)
  return stdout
}

/**
 * Writes the program to the folder `to`, without the few libraries outside it: `bin`, `dist` (JavaScript), the built dashboard, the
 * manifest and `npm-shrinkwrap.json`. @throws Error when the dashboard is not built
 */
export async function buildTree(root: string, to: string): Promise<void> {
  if (!existsSync(join(root, 'web/dist/index.html')))
    throw new Error('The dashboard is not built: run npm run prepare')
  rmSync(to, { recursive: true, force: true })
  mkdirSync(to, { recursive: true })
  // Pictures show the dashboard, which the package has.
  const filter = (source: string) => source !== join(root, 'docs/images')
  for (const name of COPIED) cpSync(join(root, name), join(to, name), { recursive: true, filter })
  chmodSync(join(to, 'bin/sendwright'), 0o755)
  const libraries = await bundleSources(join(root, 'src'), join(to, 'dist'))
  const read = (name: string) => JSON.parse(readFileSync(join(root, name), 'utf8'))
  const write = (name: string, value: unknown) =>
    writeFileSync(join(to, name), `${JSON.stringify(value, null, 2)}\n`)
  write('package.json', releaseManifest(read('package.json'), libraries))
  write('npm-shrinkwrap.json', releaseLock(read('package-lock.json') as Lock, libraries))
}

export type Processor = 'x64' | 'arm64'

/** Installs the libraries and the runtime for Linux into the tree, from the lock file. Runs no script of a package. */
export function installLibraries(tree: string, processor: Processor): void {
  const flags = [
    '--omit=dev',
    '--ignore-scripts',
    '--os=linux',
    `--cpu=${processor}`,
    '--no-audit',
    '--no-fund',
  ]
  run('npm', ['ci', ...flags], tree)
  const runtime = join(tree, `node_modules/node-linux-${processor}`)
  if (!existsSync(join(runtime, 'bin/node'))) throw new Error(`npm installed no runtime for ${processor}`)
  for (const name of UNUSED) rmSync(join(runtime, name), { recursive: true, force: true })
}
