/** What npm reads of the released package: its manifest, and the exact versions below it. */

interface Manifest {
  name: string
  version: string
  dependencies?: Record<string, string>
  overrides?: Record<string, unknown>
  [name: string]: unknown
}

interface LockedPackage {
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  devDependencies?: unknown
  [name: string]: unknown
}

export interface Lock {
  packages: Record<string, LockedPackage>
  [name: string]: unknown
}

/** Members of the project's manifest that the package has too; the others are for development. */
const KEPT = [
  ...['name', 'version', 'description', 'license', 'type', 'engines', 'bin', 'dependencies'],
  'optionalDependencies',
  // npm compares it with the place where a package with provenance was built.
  'repository',
]

/** The manifest of the package: nothing that is for development or within the program, nothing that runs at the installation. */
export const releaseManifest = (manifest: Manifest, libraries: readonly string[]): Manifest => ({
  ...(Object.fromEntries(Object.entries(manifest).filter(([name]) => KEPT.includes(name))) as Manifest),
  dependencies: only(manifest.dependencies, libraries),
  // One version for several libraries; the others are for libraries of the development.
  overrides: Object.fromEntries(
    Object.entries(manifest.overrides ?? {}).filter(([, version]) => typeof version === 'string'),
  ),
})

/** The project's lock file with `libraries`, the runtime and what these need, as `npm-shrinkwrap.json`. */
export function releaseLock(lock: Lock, libraries: readonly string[]): Lock {
  const { devDependencies: _, dependencies, ...root } = lock.packages[''] ?? {}
  const packages: Record<string, LockedPackage> = {
    '': { ...root, dependencies: only(dependencies, libraries) },
  }
  const add = (folder: string) => {
    const entry = packages[folder] ?? lock.packages[folder]
    if (!entry) return
    packages[folder] = entry
    for (const name of Object.keys({ ...entry.dependencies, ...entry.optionalDependencies })) {
      const found = foundFrom(lock, folder, name)
      if (found !== undefined && !Object.hasOwn(packages, found)) add(found)
    }
  }
  add('')
  const sorted = Object.keys(lock.packages).filter((folder) => Object.hasOwn(packages, folder))
  return { ...lock, packages: Object.fromEntries(sorted.map((folder) => [folder, packages[folder] ?? {}])) }
}

/** The folder that Node finds for library `name` when a package in `folder` asks for it. */
function foundFrom(lock: Lock, folder: string, name: string): string | undefined {
  for (let base = folder; ; base = base.slice(0, Math.max(0, base.lastIndexOf('/node_modules/')))) {
    const path = `${base}${base === '' ? '' : '/'}node_modules/${name}`
    if (Object.hasOwn(lock.packages, path)) return path
    if (base === '') return undefined
  }
}

const only = (versions: Record<string, string> = {}, names: readonly string[]) =>
  Object.fromEntries(Object.entries(versions).filter(([name]) => names.includes(name)))
