export function greeting(): string {
  return 'The console is not built yet. The service itself is: see the README for the first call.'
}
