/** The DMARC record that makes reports come here. Pure. */
import { receiversIn } from '../../../protocols/reports/dmarc/receivers.ts'
import { DMARC_REPORTS_LOCAL, dmarcAdvice } from '../../../sending/domains/names/report-addresses.ts'

/** What to publish at a domain whose record is `current`, '' for none: what is there stays, with the address for reports. */
export function advisedRecord(
  name: string,
  current: string,
): { entry: string; current: string; configured: boolean } {
  if (current === '') return { entry: dmarcAdvice(name), current, configured: false }
  const address = `${DMARC_REPORTS_LOCAL}@${name}`
  const configured = receiversIn(current).some((one) => one.address.toLowerCase() === address)
  return { entry: configured ? current : withReceiver(current, address), current, configured }
}

const RECEIVERS = /((?:^|;)[ \t]*rua[ \t]*=[^;]*?)[ \t]*(?=;|$)/i

const withReceiver = (record: string, address: string): string =>
  RECEIVERS.test(record)
    ? record.replace(RECEIVERS, `$1,mailto:${address}`)
    : `${record.replace(/[; \t]*$/, '')}; rua=mailto:${address}`
