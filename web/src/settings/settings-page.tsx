/** Frame of the settings with their tabs. Calls nothing. */
import { Link } from '@tanstack/react-router'
import { Icon } from '../look/icons.tsx'
import { may, useSession } from '../session.ts'
import { Page, PageHeader, Panel } from '../shared/page/page.tsx'
import { EmptyState } from '../shared/page/states.tsx'
import { PAGES } from './pages.ts'
import { TEXT } from './text.ts'
import './settings.css'

/** The pages of settings that the role may open. */
export default function SettingsPage() {
  const session = useSession()
  const pages = PAGES.filter(({ need }) => may(session, need))
  return (
    <Page>
      <PageHeader title={TEXT.title} />
      <Panel flush>
        {pages.length === 0 && (
          <EmptyState icon="key" title={TEXT.nothingAllowed}>
            {TEXT.nothingAllowedWhy}
          </EmptyState>
        )}
        <ul className="settings-list">
          {pages.map(({ label, to }) => (
            <li key={to}>
              <Link to={to as '/settings'} className="row-link settings-entry">
                <span>
                  {label}
                  <span className="dimmed">{TEXT.leads[to]}</span>
                </span>
                <Icon name="forward" size={16} />
              </Link>
            </li>
          ))}
        </ul>
      </Panel>
    </Page>
  )
}
