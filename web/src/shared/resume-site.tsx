import { ActionButton } from './forms/action-button.tsx'
import { ORDERS_KEY, type Pause, pauseAgain, resumeSite } from './orders-api.ts'
import { siteName } from './site-names.ts'
import { ORDER_TEXT as TEXT } from './text.ts'

/** Ends the stop of a provider; the notice stops it again as it was. `name`: as people know it. */
export function ResumeSite(props: { site: string; name?: string; pause: Pause }) {
  const { site, name = siteName(site), pause } = props
  return (
    <ActionButton
      label={TEXT.resume}
      name={TEXT.resumeOf(name)}
      run={() => resumeSite(site)}
      done={TEXT.resumed(siteName(site))}
      undo={() => pauseAgain(site, pause)}
      undone={TEXT.stoppedNow(siteName(site))}
      changes={ORDERS_KEY}
    />
  )
}
