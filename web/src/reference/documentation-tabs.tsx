import { Link } from '@tanstack/react-router'
import { TEXT } from './text.ts'

/** Guides have paths below the reference's. */
const EXACTLY = { exact: true }

/** Between the guides and the reference; there also without a session, where no navigation is shown. */
export function DocumentationTabs({ open }: { open: 'guides' | 'reference' }) {
  const current = (name: typeof open) => (name === open ? { 'aria-current': 'page' as const } : {})
  return (
    <div className="documentation-tabs">
      <Link to="/docs/guides" activeOptions={EXACTLY} {...current('guides')}>
        {TEXT.guides}
      </Link>
      <Link to="/docs" activeOptions={EXACTLY} {...current('reference')}>
        {TEXT.title}
      </Link>
    </div>
  )
}
