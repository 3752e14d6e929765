/** Consent: members of lists that are asked first, the form to join a list, and the trail of who agreed to what. */
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import type { ConfirmationMail } from '../../mail/messages/confirmation-mail.ts'
import type { Domain } from '../domains/domain.ts'
import type { ListsArea } from '../lists/area.ts'
import type { TrackingArea } from '../tracking/area.ts'
import { createConfirmations } from './confirmations.ts'
import { createFormLimits } from './form-limits.ts'
import { pageRoutes } from './page-routes.ts'
import { consentRoutes } from './routes.ts'

interface ConsentUses {
  lists: Pick<ListsArea, 'lists' | 'store' | 'onPending'>
  tracking: Pick<TrackingArea, 'tokens' | 'linkBase' | 'pageTemplates'>
  sendMail: ConfirmationMail
}

export function consentArea(core: Core, { lists, tracking, sendMail }: ConsentUses): Area {
  const { config, store, domains, clock, log, sealer } = core
  const { pageTemplates } = tracking
  /** A host of the domain's own where it has https, else the service's. */
  const pageBase = async (domain: Domain | null) => {
    const base = domain && (await tracking.linkBase(domain))
    return base?.startsWith('https:') ? base : config.publicUrl
  }
  const confirmations = createConfirmations({
    ...{ store, domains, clock, log, pageBase, sendMail },
    ...{ lists: lists.store, tokens: tracking.tokens },
    formLimits: createFormLimits(store, (text) => sealer.mac('form-mails', text).toString('base64url')),
  })
  lists.onPending(confirmations.wake)
  return {
    operations: [
      ...consentRoutes({ store, lists: lists.lists, domains, pageBase, pageTemplates }),
      ...pageRoutes({ confirmations, lists: lists.store, pageTemplates, clock }),
    ],
    jobs: confirmations.jobs,
  }
}
