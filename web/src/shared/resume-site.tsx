import { ActionButton } from './action-button.tsx'
import { ORDERS_KEY, type Pause, pauseAgain, resumeSite } from './orders-api.ts'
import { ORDER_TEXT as TEXT } from './text.ts'

/** Ends the stop of a provider; the notice stops it again as it was. `name`: as people know it. */
export const ResumeSite = ({ site, name = site, pause }: { site: string; name?: string; pause: Pause }) => (
  <ActionButton
    label={TEXT.resume}
    name={TEXT.resumeOf(name)}
    run={() => resumeSite(site)}
    done={TEXT.resumed(site)}
    undo={() => pauseAgain(site, pause)}
    undone={TEXT.stoppedNow(site)}
    changes={ORDERS_KEY}
  />
)
