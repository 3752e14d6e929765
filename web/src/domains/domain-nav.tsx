import { Link } from '@tanstack/react-router'
import { useMay } from '../session.ts'
import { NAV_TEXT as TEXT } from './text.ts'
import './domains.css'

/** Links between the pages of one domain; those that the role may open. */
export function DomainNav({ name, isSandbox }: { name: string; isSandbox: boolean }) {
  const mayLogins = useMay({ area: 'keys' })
  const exact = { exact: true, includeSearch: false } as const
  return (
    <nav className="domain-nav" aria-label={TEXT.label}>
      <Link to="/domains/$name" params={{ name }} activeOptions={exact}>
        {TEXT.records}
      </Link>
      <Link to="/domains/$name/health" params={{ name }} activeOptions={exact}>
        {TEXT.health}
      </Link>
      <Link to="/domains/$name/settings" params={{ name }} activeOptions={exact}>
        {TEXT.settings}
      </Link>
      {!isSandbox && (
        <Link to="/domains/$name/keys" params={{ name }} activeOptions={exact}>
          {TEXT.keys}
        </Link>
      )}
      {mayLogins && (
        <Link to="/domains/$name/logins" params={{ name }} activeOptions={exact}>
          {TEXT.logins}
        </Link>
      )}
      <Link to="/domains/$name/receivers" params={{ name }} activeOptions={exact}>
        {TEXT.receivers}
      </Link>
      <Link to="/webhooks" search={{ domain: name }}>
        {TEXT.webhooks}
      </Link>
    </nav>
  )
}
