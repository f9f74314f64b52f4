import time, importlib
import torch
for m in ("numpy","scipy","numba","llvmlite","msgspec","threadpoolctl","lazy_loader","typer","rich","networkx","matplotlib"):
    try: print(m, importlib.import_module(m).__version__)
    except Exception as e: print(m, "MISSING", repr(e)[:100])
print(torch.__version__, torch.cuda.get_device_name(), torch.cuda.mem_get_info())
d = torch.device("cuda")
def t(f, n=5):
    f(); torch.cuda.synchronize(); s=time.perf_counter()
    for _ in range(n): f()
    torch.cuda.synchronize(); return (time.perf_counter()-s)/n
H=36000
A=torch.rand(H,H,dtype=torch.float64,device=d); C=torch.rand(2*H,3600,dtype=torch.float64,device=d)
for w in (2048,4096,8192):
    s=t(lambda: A[w:2*w,:w].addmm_(C[w:2*w],C[:w].T,alpha=-1)); print("tile",w,2*w*w*3600/s/1e12)
s=t(lambda: A.addmm_(C[:H],C[:H].T,alpha=-1),2); print("full",2*H*H*3600/s/1e12)
A.fill_diagonal_(1e9)
for w in (512,1024,2048,4096):
    B=A[:w,:w].clone().contiguous(); B=B@B.T
    s=t(lambda: torch.linalg.cholesky_ex(B)); print("chol",w,s)
    L=torch.linalg.cholesky(B)
    X=A[w:,:w]; s=t(lambda: torch.linalg.solve_triangular(L.T,X,upper=True,left=False)); print("trsm",w,s,X.shape[0]*w*w/s/1e12)
    Y=A[:w]; s=t(lambda: torch.linalg.solve_triangular(L,Y,upper=False)); print("trsm left",w,s)
for w in (1024,4096):
    idx=torch.randperm(H,device=d)[:30000]; src=torch.randperm(H,device=d)[:30000]; f=torch.rand(30000,1,dtype=torch.float64,device=d)
    blk=A[:,:w]; out=torch.empty(H,w,dtype=torch.float64,device=d)
    print("scale",w,t(lambda: torch.mul(blk,0.5,out=out)))
    print("gather",w,t(lambda: blk[src]), "mul", t(lambda: blk[src]*f), "index_add",t(lambda: out.index_add_(0,idx,blk[src]*f)))
    tb=A[:w].T
    print("transpose copy",w,t(lambda: tb.contiguous()),"back",t(lambda: tb.copy_(out)), "straight", t(lambda: blk.copy_(out)))
    crow=torch.arange(H+1,device=d); S=torch.sparse_csr_tensor(crow,torch.randperm(H,device=d),torch.rand(H,dtype=torch.float64,device=d),(H,H))
    print("spmm",w,t(lambda: torch.sparse.mm(S,blk)))
