import { useBlocker } from '@tanstack/react-router'
import { Confirm } from '../../base/confirm.tsx'
import { LEAVE_TEXT as TEXT } from '../text.ts'

/** Asks before a page with unsaved text is left; before the tab is closed or loaded anew, the browser asks in its own words. */
export function LeaveGuard({ isUnsaved, lost }: { isUnsaved: boolean; lost: string }) {
  const leaving = useBlocker({
    // Parts of the URL change while one writes.
    shouldBlockFn: ({ current, next }) => isUnsaved && current.pathname !== next.pathname,
    enableBeforeUnload: isUnsaved,
    withResolver: true,
  })
  return (
    <Confirm
      opened={leaving.status === 'blocked'}
      title={TEXT.title}
      consequence={lost}
      action={TEXT.leave}
      busy={false}
      failure={undefined}
      onConfirm={() => leaving.proceed?.()}
      onClose={() => leaving.reset?.()}
    />
  )
}
