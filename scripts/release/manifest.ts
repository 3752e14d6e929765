/** What npm reads of the released package: its manifest, and the exact versions below it. */

interface Manifest {
  name: string
  version: string
  [name: string]: unknown
}

interface LockedPackage {
  dev?: boolean
  /** Needed by development, and by nothing else that is not optional. */
  devOptional?: boolean
  peer?: boolean
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
]

/** The manifest of the package: nothing that is for development, nothing that runs at the installation. */
export const releaseManifest = (manifest: Manifest): Manifest =>
  Object.fromEntries(Object.entries(manifest).filter(([name]) => KEPT.includes(name))) as Manifest

/** The project's lock file without what only development needs, as `npm-shrinkwrap.json`. */
export function releaseLock(lock: Lock): Lock {
  const kept = Object.entries(lock.packages).filter(([, entry]) => !entry.dev && !entry.devOptional)
  const names = new Set(kept.map(([name]) => name))
  // Platform packages of a dropped package are not marked as its own.
  const isOrphan = (name: string) =>
    name.startsWith('node_modules/@typescript/') && !names.has('node_modules/typescript')
  const packages = Object.fromEntries(kept.filter(([name]) => !isOrphan(name)))
  const { devDependencies: _, ...root } = packages[''] ?? {}
  return { ...lock, packages: { ...packages, '': root } }
}
