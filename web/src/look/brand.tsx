export function Brand() {
  return (
    <span className="brand">
      <img src="/favicon.svg" width={24} height={24} alt="" />
      Sendwright
    </span>
  )
}
