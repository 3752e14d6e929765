import { Link } from '@tanstack/react-router'
import { Icon } from '../look/icons.tsx'
import { TEXT } from './text.ts'

/** A small link, beside an address, to the page of the person who has it. */
export const PersonLink = ({ address }: { address: string }) => (
  <Link
    className="person-link"
    to="/people/$address"
    params={{ address }}
    search={{}}
    aria-label={TEXT.personOf(address)}
    title={TEXT.personOf(address)}
  >
    <Icon name="users" size={16} />
  </Link>
)
