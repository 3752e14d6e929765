import { lazy, type ReactNode, Suspense, useEffect, useState } from 'react'
import { type MailedLink, readMailedLink } from './mailed-link.ts'

const ChoosePassword = lazy(async () => ({ default: (await import('./choose-password.tsx')).ChoosePassword }))

/** Removes the link from the page's address, so that neither the history nor the next page contains its token. */
function takeLink(): MailedLink | null {
  const link = readMailedLink(window.location.hash)
  if (link !== null) window.history.replaceState(null, '', window.location.pathname)
  return link
}

const openedWith = takeLink()

/** With a mailed link, the visitor chooses a password first, signed in or not. */
export function MailedLinkGate({ children }: { children: ReactNode }) {
  const [link, setLink] = useState(openedWith)
  useEffect(() => {
    // Opening another link in the same page does not load it again.
    const look = () => setLink((known) => takeLink() ?? known)
    window.addEventListener('hashchange', look)
    return () => window.removeEventListener('hashchange', look)
  }, [])
  if (link === null) return children
  return (
    <Suspense>
      <ChoosePassword key={link.token} link={link} onDone={() => setLink(null)} />
    </Suspense>
  )
}
