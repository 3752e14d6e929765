/** Limits of the account: monthly, rates, unknown parameters. */
import { useMay, useSession } from '../../session.ts'
import { Page, PageHeader } from '../../shared/page/page.tsx'
import { TEXT as SHARED } from '../text.ts'
import { MonthlyLimit } from './monthly-limit.tsx'
import { RateLimits } from './rate-limits.tsx'
import { TEXT } from './text.ts'
import { UnknownParameters } from './unknown-parameters.tsx'
import '../settings.css'

export default function LimitsPage() {
  const { account } = useSession()
  const mayRate = useMay({ area: 'account', access: 'write', only: 'first' })
  return (
    <Page>
      <PageHeader title={TEXT.title} lead={TEXT.lead} back={{ to: '/settings', label: SHARED.title }} />
      <MonthlyLimit />
      <UnknownParameters />
      {/* Last: it grows when it comes. */}
      {mayRate && <RateLimits accountId={account.id} />}
    </Page>
  )
}
