/** Puts together what tracks outgoing mail; the public tracking host reads the same tokens and links. */
import { createStoredLinks } from '../tracking/links.ts'
import { createTrackingDirectory } from '../tracking/settings.ts'
import { createTokens } from '../tracking/tokens.ts'
import { createTracker } from '../tracking/tracker.ts'
import type { Certificates } from './certificates.ts'
import type { Core } from './core.ts'

export function createTracking(core: Core, { certificateActive }: Certificates) {
  const { config, store, clock, sealer } = core
  const settings = createTrackingDirectory(store, clock)
  const tokens = createTokens(sealer)
  const links = createStoredLinks(store, clock)
  const tracker = createTracker({
    settings,
    tokens,
    links,
    fallbackUrl: config.trackingUrl,
    tlsExternal: config.trackingTlsExternal,
    certificateActive,
  })
  return { settings, tokens, links, tracker }
}

export type TrackingComposition = ReturnType<typeof createTracking>
