import json,sys,collections
p=json.load(open(sys.argv[1])); per=float(sys.argv[2])
self_=collections.Counter(); incl=collections.Counter(); grp=collections.Counter()
def nm(c):
    u=c['url'].replace('file:///tmp/twelve/main/',''); u=u.split('node_modules/')[-1]
    return f"{c['functionName'] or '(anon)'} {u}:{c['lineNumber']+1}"
def walk(n,stack):
    c=n['callFrame']; name=nm(c); s=n['selfSize']
    self_[name]+=s
    u=c['url']; grp[u.replace('file:///tmp/twelve/main/','').split('node_modules/')[-1]]+=s
    st=stack+[name]
    if s:
        for x in set(st): incl[x]+=s
    for ch in n['children']: walk(ch,st)
sys.setrecursionlimit(10000)
walk(p['head'],[])
tot=sum(self_.values())
print('total per request', tot/per/1024,'KB')
print('--self');
for k,v in self_.most_common(60): print(f'{v/per:8.0f} B {k}')
print('--file')
for k,v in grp.most_common(40): print(f'{v/per:8.0f} B {k}')
