/** What is used of the package: the roots of those who issue mark certificates. */
declare module '@postalsys/vmc' {
  import type { X509Certificate } from 'node:crypto'
  export const RootStore: { create(): { rootCerts: readonly X509Certificate[] } }
}
