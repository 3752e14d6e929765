import { ActionIcon, Badge, useComputedColorScheme, useMantineColorScheme } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import { signOut } from './api.ts'
import { Brand } from './brand.tsx'
import { Icon } from './icons.tsx'
import { SECTIONS } from './navigation.ts'
import { systemQuery } from './queries.ts'

export function Shell() {
  const { pathname } = useLocation()
  return (
    <div className="shell">
      <header className="shell-bar">
        <Brand />
        <nav className="shell-sections" aria-label="Sections">
          {SECTIONS.map(({ label, icon, to, holds }) => (
            <Link key={to} to={to} className="shell-section" data-open={holds.test(pathname) || undefined}>
              <Icon name={icon} size={16} />
              {label}
            </Link>
          ))}
        </nav>
        <ModeBadge />
        <ColorSchemeButton />
        <SignOutButton />
      </header>
      <Outlet />
    </div>
  )
}

const MODES: Record<string, { label: string; meaning: string }> = {
  capture: { label: 'Capture mode', meaning: 'Mail ends in this inbox; none leaves the machine.' },
  direct: { label: 'Live: direct delivery', meaning: 'Mail goes to the mail servers of its recipients.' },
}

function ModeBadge() {
  const { data } = useQuery(systemQuery)
  if (data === undefined) return null
  const mode = MODES[data.mode] ?? {
    label: 'Live: through a relay',
    meaning: 'Mail goes out through a relay.',
  }
  return (
    <Badge
      className="shell-mode"
      variant="light"
      color={data.mode === 'capture' ? 'petrol' : 'orange'}
      tt="none"
      fw={550}
      title={`${mode.meaning} Version ${data.version}.`}
    >
      {mode.label}
    </Badge>
  )
}

function ColorSchemeButton() {
  const { setColorScheme } = useMantineColorScheme()
  const shown = useComputedColorScheme('light')
  const other = shown === 'dark' ? 'light' : 'dark'
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      size="lg"
      aria-label={`Use ${other} colours`}
      title={`Use ${other} colours`}
      onClick={() => setColorScheme(other)}
    >
      <Icon name={shown === 'dark' ? 'sun' : 'moon'} />
    </ActionIcon>
  )
}

/** Reloads the page, which drops all data of the session: the next one may belong to another account. */
function SignOutButton() {
  const leave = async () => {
    const answer = await signOut()
    window.location.assign((answer.ok && answer.value.logout_redirect_url) || '/')
  }
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      size="lg"
      aria-label="Sign out"
      title="Sign out"
      onClick={() => void leave()}
    >
      <Icon name="signOut" />
    </ActionIcon>
  )
}
