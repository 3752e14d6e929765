/** Frame of all pages: navigation, account, theme. Signing out calls DELETE /sendwright/v1/session. */
import { ActionIcon, Badge, Drawer, useComputedColorScheme, useMantineColorScheme } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { signOut } from './api.ts'
import { Brand } from './look/brand.tsx'
import { Icon } from './look/icons.tsx'
import { systemQuery } from './queries.ts'
import { holds, type Section } from './section.ts'
import { sectionsFor } from './sections.ts'
import { may, sessionQuery, useSession } from './session.ts'
import { AccountSwitch, ActingStrip } from './shared/account-switch.tsx'
import { Notices } from './shared/page/notices.tsx'
import { ShortcutHelp, useShortcuts } from './shared/shortcuts.tsx'
import { SHELL_TEXT as TEXT } from './shared/text.ts'

/** Loaded when it is opened first; it stays, so that the focus returns when it closes. */
const Palette = lazy(async () => ({ default: (await import('./shared/palette.tsx')).Palette }))

/** The frame of all pages. */
export function Shell() {
  // The gate (session-gate.tsx) has asked, and a page that needs no session is shown without one.
  const { data: session } = useQuery({ ...sessionQuery, retryOnMount: false })
  return session === undefined ? <OpenShell /> : <SessionShell />
}

const NO_SECTIONS: readonly Section[] = []

/** Frames a page that is shown without a session: links to other pages load the dashboard anew. */
function OpenShell() {
  const [isHelpOpen, setHelpOpen] = useState(false)
  const openHelp = useCallback(() => setHelpOpen(true), [])
  useShortcuts(NO_SECTIONS, NO_PALETTE, openHelp)
  return (
    <div className="shell">
      <a className="skip-link" href="#main">
        {TEXT.skip}
      </a>
      <header className="shell-bar">
        <Brand />
        <span className="grow" />
        <HelpButton onClick={openHelp} />
        <ColorSchemeButton />
        <a className="shell-sign-in" href="/">
          {TEXT.signIn}
        </a>
      </header>
      <Outlet />
      <ShortcutHelp opened={isHelpOpen} onClose={() => setHelpOpen(false)} sections={NO_SECTIONS} />
      <Notices />
    </div>
  )
}

/** The palette leads to pages that need a session. */
const NO_PALETTE = () => undefined

/** With a session: bar, navigation, and what opens over them. */
function SessionShell() {
  const session = useSession()
  const { data: system } = useQuery(systemQuery)
  const sections = useMemo(() => sectionsFor(session, system?.mode), [session, system?.mode])
  const [over, setOver] = useState<'palette' | 'help' | 'menu' | null>(null)
  const openPalette = useCallback(() => setOver('palette'), [])
  const openHelp = useCallback(() => setOver('help'), [])
  const close = useCallback(() => setOver(null), [])
  const hasPalette = useRef(false)
  if (over === 'palette') hasPalette.current = true
  useShortcuts(sections, openPalette, openHelp)
  const { pathname } = useLocation()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu closes when another page opens
  useEffect(() => setOver((open) => (open === 'menu' ? null : open)), [pathname])
  return (
    <div className="shell">
      <a className="skip-link" href="#main">
        {TEXT.skip}
      </a>
      <header className="shell-bar">
        <ActionIcon
          className="shell-menu-button"
          variant="subtle"
          color="gray"
          size="lg"
          aria-label={TEXT.menu}
          onClick={() => setOver('menu')}
        >
          <Icon name="menu" />
        </ActionIcon>
        <Brand />
        <button type="button" className="shell-jump" onClick={openPalette}>
          <Icon name="search" size={16} />
          <span className="shell-jump-words">{TEXT.jump}</span>
          <span className="shell-jump-key" aria-hidden="true">
            Ctrl K
          </span>
        </button>
        <span className="grow" />
        <AccountSwitch />
        <ModeBadge />
        <HelpButton onClick={openHelp} />
        <AccountMenu />
      </header>
      <ActingStrip />
      <div className="shell-body">
        <nav className="shell-side" aria-label={TEXT.sections}>
          <SectionLinks sections={sections} />
        </nav>
        {/* Another language or time zone writes all dates anew. */}
        <Outlet key={`${session.user?.language} ${session.user?.time_zone}`} />
      </div>
      <Drawer opened={over === 'menu'} onClose={close} size="min(80vw, 300px)" title={<Brand />}>
        <nav aria-label={TEXT.sections}>
          <SectionLinks sections={sections} />
        </nav>
      </Drawer>
      {hasPalette.current && (
        <Suspense>
          <Palette opened={over === 'palette'} onClose={close} sections={sections} />
        </Suspense>
      )}
      <ShortcutHelp opened={over === 'help'} onClose={close} sections={sections} />
      <Notices />
    </div>
  )
}

/** The sections, and the pages of the open one. */
function SectionLinks({ sections }: { sections: readonly Section[] }) {
  const session = useSession()
  const { pathname } = useLocation()
  return (
    <ul className="section-links">
      {sections.map((section) => {
        const isOpen = holds(section, pathname)
        const pages = (isOpen ? (section.pages ?? []) : []).filter(({ need }) => may(session, need))
        // The longest path: a page may stand below another one's.
        const openPage = pages
          .map(({ to }) => to)
          .filter((to) => pathname === to || pathname.startsWith(`${to}/`))
          .reduce((longest, to) => (to.length > longest.length ? to : longest), '')
        return (
          <li key={section.to}>
            <Link
              to={section.to as '/'}
              className="shell-section"
              data-open={isOpen || undefined}
              title={`g ${section.letter}`}
              {...(isOpen && { 'aria-current': 'page' as const })}
            >
              <Icon name={section.icon} size={17} />
              {section.label}
            </Link>
            {pages.length > 0 && (
              <ul className="section-pages">
                {pages.map(({ label, to }) => (
                  <li key={to}>
                    <Link to={to as '/'} className="shell-page" data-open={to === openPage || undefined}>
                      {label}
                    </Link>
                  </li>
                ))}
              </ul>
            )}
          </li>
        )
      })}
    </ul>
  )
}

const MODES: Record<string, { label: string; meaning: string }> = {
  capture: { label: 'Capture mode', meaning: 'Mail ends in this inbox; none leaves the machine.' },
  direct: { label: 'Live: direct delivery', meaning: 'Mail goes to the mail servers of its recipients.' },
}

const RELEASABLE = 'Mail ends in this inbox; it leaves only where somebody releases it.'

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
      title={`${data.inbox_release && data.mode === 'capture' ? RELEASABLE : mode.meaning} Version ${data.version}.`}
    >
      {mode.label}
    </Badge>
  )
}

function HelpButton({ onClick }: { onClick: () => void }) {
  return (
    <ActionIcon
      className="shell-help-button"
      variant="subtle"
      color="gray"
      size="lg"
      aria-label={TEXT.help}
      title={`${TEXT.help} (?)`}
      onClick={onClick}
    >
      <Icon name="help" />
    </ActionIcon>
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
      aria-label={TEXT.colours(other)}
      title={TEXT.colours(other)}
      onClick={() => setColorScheme(other)}
    >
      <Icon name={shown === 'dark' ? 'sun' : 'moon'} />
    </ActionIcon>
  )
}

/** Id of the menu, which its button opens by the browser's own means. */
const ACCOUNT_MENU = 'account-menu'

/** Who is signed in, and what concerns only them. */
function AccountMenu() {
  const { user, account, kind, role } = useSession()
  const { pathname } = useLocation()
  const name = user === null ? TEXT.noUser : user.name || user.email
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu closes when another page opens
  useEffect(() => document.getElementById(ACCOUNT_MENU)?.hidePopover(), [pathname])
  return (
    <>
      <button
        type="button"
        className="account-button"
        aria-label={TEXT.accountMenu(name)}
        title={name}
        popoverTarget={ACCOUNT_MENU}
      >
        <Icon name={user === null ? 'key' : 'users'} size={17} />
        <span className="account-name ellipsis">{name}</span>
      </button>
      <div id={ACCOUNT_MENU} popover="auto" className="account-menu">
        <p className="account-menu-who">
          <strong className="breakable">{name}</strong>
          {user !== null && user.name !== '' && <span className="breakable">{user.email}</span>}
          <span className="breakable">
            {account.name === '' ? TEXT.role(role) : `${account.name}, ${TEXT.role(role)}`}
          </span>
        </p>
        {user !== null && kind === 'session' && (
          <Link to={'/settings/profile' as '/'} className="account-menu-item">
            <Icon name="users" size={16} />
            {TEXT.profile}
          </Link>
        )}
        <ColorSchemeItem />
        <SignOutItem />
      </div>
    </>
  )
}

function ColorSchemeItem() {
  const { setColorScheme } = useMantineColorScheme()
  const shown = useComputedColorScheme('light')
  const other = shown === 'dark' ? 'light' : 'dark'
  return (
    <button type="button" className="account-menu-item" onClick={() => setColorScheme(other)}>
      <Icon name={shown === 'dark' ? 'sun' : 'moon'} size={16} />
      {TEXT.colours(other)}
    </button>
  )
}

/** Reloads the page, which drops all data of the session: the next one may belong to another account. */
function SignOutItem() {
  const leave = async () => {
    const answer = await signOut()
    window.location.assign((answer.ok && answer.value.logout_redirect_url) || '/')
  }
  return (
    <button type="button" className="account-menu-item" onClick={() => void leave()}>
      <Icon name="signOut" size={16} />
      {TEXT.signOut}
    </button>
  )
}
